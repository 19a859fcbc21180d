import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'

/**
 * Writes a file (0600) as a whole: no reader sees a part of it, and after an error the old one is unchanged. `flush`: its
 * content is on the disk before it replaces the old one. `ready`: called before that, with the descriptor of the new file.
 */
export function replaceFile(
	file: string,
	content: string | Buffer,
	{ flush = false, ready }: { flush?: boolean; ready?: (descriptor: number) => void } = {},
): void {
	const temporary = `${file}.${process.pid}.tmp`
	try {
		// A process with the same id may have been killed here.
		rmSync(temporary, { force: true })
		const descriptor = openSync(temporary, 'wx', 0o600)
		try {
			writeFileSync(descriptor, content)
			if (flush) fsyncSync(descriptor)
			ready?.(descriptor)
		} finally {
			closeSync(descriptor)
		}
		renameSync(temporary, file)
	} finally {
		rmSync(temporary, { force: true })
	}
}
