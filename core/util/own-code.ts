/**
 * The gateway's own code, where no import statement names it: parts of plugins, which are found by their file, and programs
 * of threads and processes. In a bundle, core/cli/launch/make-bundle.mjs puts functions in the place of these that find the
 * same code in the bundle.
 */

/** Imports a file of the gateway by the address of its source. Any other file, such as a third-party plugin's, is imported as it is. */
export function importOwn(file: URL): Promise<unknown> {
	return import(file.href)
}

/** What a thread or a process is to run, by the address of its source. It must be listed in core/cli/launch/make-bundle.mjs. */
export function programOf(file: URL): URL {
	return file
}
