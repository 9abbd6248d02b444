#!/bin/sh
# Stands for your builder: builds an image and uploads it. Its argument is the name of the image.
set -eu
echo "building $1"
