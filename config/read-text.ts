import { lstatSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { Fault, messageOf } from '../core/errors.ts'

const maxBytes = 1024 * 1024

/** The text of a gateway.yaml; empty if the file does not exist. Throws `config_invalid` if it cannot be read as text. */
export function readText(file: string): string {
	try {
		const found = statSync(file, { throwIfNoEntry: false })
		if (!found && lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink())
			// The disk may not be mounted. The defaults could allow what the file forbids.
			throw new Error(`is a link to ${readlinkSync(file)}, which does not exist`)
		if (!found) return ''
		if (!found.isFile()) throw new Error('is not a file')
		if (found.size > maxBytes) throw new Error('is larger than 1 MiB')
		return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
	} catch (error) {
		const message = error instanceof TypeError ? 'is not UTF-8 text; save it as UTF-8' : messageOf(error)
		throw new Fault('config_invalid', `${file}: ${message}`, { errors: [{ path: '', message }] })
	}
}
