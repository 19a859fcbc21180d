/**
 * Finds the gateway's own code that no import statement names: parts of plugins, which are found by the name of their file, and
 * programs of threads and processes. In a bundle, core/cli/launch/make-bundle.mjs replaces these functions by ones that find the
 * same code in the bundle.
 */

/** Imports a file of the gateway by the address of its source. Other files, such as those of third-party plugins, are imported normally. */
export function importOwn(file: URL): Promise<unknown> {
	return import(file.href)
}

/** The program of a thread or a process, by the address of its source. It must be listed in core/cli/launch/make-bundle.mjs. */
export function programOf(file: URL): URL {
	return file
}
