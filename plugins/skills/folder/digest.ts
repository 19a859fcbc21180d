/**
 * What an approval names. Of a skill that is one file: sha256 of its bytes. Of several: sha256 of their listing, one line
 * `<sha256 of the file>  <path>\n` for each, in the order of the paths' bytes, which is what `sha256sum` prints.
 *
 * No listing is the text of a document, and no path contains a line end, so no two skills share what is hashed.
 */
import { hash } from 'node:crypto'
import type { SkillFile } from './contract.ts'

/** A file without its bytes. */
export interface ListedFile {
	path: string
	/** Bytes. */
	size: number
	/** In hex. */
	sha256: string
}

/** The files in the listing's order. */
export function digestOfListing(listing: readonly ListedFile[]): string {
	const [only, ...others] = listing
	if (only && others.length === 0) return only.sha256
	return sha256(listing.map((file) => `${file.sha256}  ${file.path}\n`).join(''))
}

export function listingOf({ path, bytes }: SkillFile): ListedFile {
	return { path, size: bytes.length, sha256: sha256(bytes) }
}

export function sha256(content: string | Uint8Array): string {
	return hash('sha256', content)
}
