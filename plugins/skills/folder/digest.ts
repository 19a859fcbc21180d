/**
 * The digest that an approval refers to. For a skill of one file, sha256 of its bytes. For several files, sha256 of a listing with
 * one line `<sha256 of the file>  <path>\n` per file, sorted by the bytes of the paths, as `sha256sum` prints it.
 *
 * A listing cannot be a valid document, and paths contain no line ends, so different skills never have the same hash input.
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

/** `listing`: sorted by the bytes of the paths. */
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
