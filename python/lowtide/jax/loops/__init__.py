"""Loops over layers or time: what their backward takes from their forward is planned in the body, for all rounds alike."""
