// The umbrella header: everything a program that uses lacuna needs.
#pragma once
