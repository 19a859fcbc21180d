/** A skill as a folder of files, independent of its source. */

/** Limits of one skill. */
export const FILES_LIMIT = 200
export const FOLDER_LIMIT_BYTES = 8 * 1024 * 1024

export interface SkillFile {
	/** Relative to the skill's folder, with `/` as separator. The path of the document is `SKILL.md`. See `pathOf`. */
	path: string
	bytes: Uint8Array
}

/** An entry of a folder or an archive that is not installed. */
export interface LeftOut {
	path: string
	why: 'link' | 'special'
}

/** A complete skill. */
export interface SkillFolder {
	/** Sorted by the bytes of their paths. One of them is `SKILL.md`. */
	files: SkillFile[]
	/** At most 50. */
	left_out: LeftOut[]
}

export const DOCUMENT = 'SKILL.md'

/** An entry of an archive. */
export interface ArchiveEntry {
	/** As stated in the archive. */
	name: string
	kind: 'file' | 'folder' | 'link' | 'special'
	/** Bytes, as stated in the archive. */
	size: number
}

/** An archive in memory. It is read twice: for the list of its entries, and for the contents of some of them. */
export interface Archive {
	/** At most 20,000 entries. Throws `skill_invalid` if there are more, or if the archive is damaged. */
	entries(): Promise<ArchiveEntry[]>
	/**
	 * The contents of entries, by their position in `entries()`. Throws `skill_invalid` if one is damaged, or if they have more than
	 * 8 MiB together.
	 */
	read(places: ReadonlySet<number>): Promise<Map<number, Uint8Array>>
}

export const ENTRIES_LIMIT = 20_000
