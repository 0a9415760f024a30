"""File formats: archives, images, MATLAB arrays, TFRecords; errors name the damaged file."""
