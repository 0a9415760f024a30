"""File formats: archives, images, MATLAB arrays, TFRecords, and errors that name the file."""
