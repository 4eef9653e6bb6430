"""What the front end knows of tensors, storages and operators, before anything is traced or priced."""
