/** A skill as a folder of files, wherever it came from. */

/** Limits of one skill. */
export const FILES_LIMIT = 200
export const FOLDER_LIMIT_BYTES = 8 * 1024 * 1024

export interface SkillFile {
	/** Relative to the skill's folder, with `/` between its parts; the document's is `SKILL.md`. See `pathOf`. */
	path: string
	bytes: Uint8Array
}

/** Something in a folder or an archive that is not installed. */
export interface LeftOut {
	path: string
	why: 'link' | 'special'
}

/** A complete skill. */
export interface SkillFolder {
	/** In the order of their paths' bytes, one of them `SKILL.md`. */
	files: SkillFile[]
	/** At most 50. */
	left_out: LeftOut[]
}

export const DOCUMENT = 'SKILL.md'

/** An entry of an archive. */
export interface ArchiveEntry {
	/** As the archive has it. */
	name: string
	kind: 'file' | 'folder' | 'link' | 'special'
	/** Bytes, as the archive states them. */
	size: number
}

/** An archive in memory that is read twice: for its entries, and for the contents of some of them. */
export interface Archive {
	/** At most 20,000. Throws `skill_invalid` for a damaged one. */
	entries(): Promise<ArchiveEntry[]>
	/**
	 * The contents of entries, by their place in `entries()`. Throws `skill_invalid` if one is damaged, or they have more
	 * than 8 MiB in all.
	 */
	read(places: ReadonlySet<number>): Promise<Map<number, Uint8Array>>
}

export const ENTRIES_LIMIT = 20_000
