import type { Entry, Op } from '../../core/store/ports.ts'
import { ofEachAgent } from '../../core/upgrade/migration.ts'
import type { Migration } from '../../core/upgrade/migration.ts'
import type { Index, IndexEntry, SkillRecord } from './records.ts'

/** Version 0.1.0 stored a document as text. The digest stays valid, since the bytes are the same. */
const documentsAsBytes: Migration = {
	name: 'skill-documents-as-bytes',
	about: 'documents of skills',
	format: 2,
	places: (store) => ofEachAgent(store, ['skill-text']),
	convert: (entries) =>
		entries.flatMap(({ key, value, rev }): Op[] =>
			typeof value === 'string' ? [{ key, value: Buffer.from(value), expect: rev }] : [],
		),
}

/** The index of version 0.1.0 had no sizes. */
const sizesInIndex: Migration = {
	name: 'skill-sizes',
	about: 'lists of skills',
	format: 2,
	places: (store) => ofEachAgent(store, ['skills']),
	async convert(entries, store) {
		const ops: Op[] = []
		for (const { key, value, rev } of entries as Entry<OldIndex>[]) {
			if (value.skills.every(({ size }) => size !== undefined)) continue
			const skills = await Promise.all(
				value.skills.map(async (skill): Promise<IndexEntry> => {
					const record = await store.get<SkillRecord>([key[0], 'skill', skill.id])
					return { ...skill, size: skill.size ?? record?.value.size ?? 0 }
				}),
			)
			ops.push({ key, value: { skills } satisfies Index, expect: rev })
		}
		return ops
	},
}

interface OldIndex {
	skills: (Omit<IndexEntry, 'size'> & Partial<Pick<IndexEntry, 'size'>>)[]
}

export default [documentsAsBytes, sizesInIndex]
