// compose
