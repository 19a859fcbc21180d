/** Reads approved skills from the store, checks them against their digest, and caches parsed documents. */
import { isFault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { readDocument } from './document.ts'
import type { SkillDocument } from './document.ts'
import { infoOf } from './file-kind.ts'
import type { FileInfo } from './file-kind.ts'
import { DOCUMENT } from './folder/contract.ts'
import { digestOfListing, listingOf, sha256 } from './folder/digest.ts'
import { changeIndex, erasing } from './records.ts'
import type { IndexEntry } from './records.ts'
import { readFiles, readListing, readStoredDocument, readStoredFile } from './stored-files.ts'

/** Limit of parsed documents in memory; each at most 272 KiB of text. */
const PARSED_LIMIT = 256

const CHANGED = {
	reason: 'skill_changed',
	message: 'the stored files are not the approved ones; review them, or remove the skill and install it again',
}

export interface ApprovedSkill {
	document: SkillDocument
	/** All files, including the document. */
	files: FileInfo[]
}

export type Library = ReturnType<typeof openLibrary>

export function openLibrary({ store, emit, log }: Pick<Context, 'store' | 'emit' | 'log'>) {
	const parsed = new BoundedMap<string, SkillDocument>(PARSED_LIMIT)

	const quarantine = async (
		agent: AgentRef,
		entry: IndexEntry,
		{ reason, message }: { reason: string; message: string },
	): Promise<undefined> => {
		const files = await readFiles(store, agent, entry.id)
		const actual = files && digestOfListing(files.map(listingOf))
		const changed = await changeIndex(store, agent, (skills) => {
			const at = skills.findIndex(
				(one) => one.id === entry.id && one.status === 'active' && one.digest === entry.digest,
			)
			if (at < 0) return { result: false }
			if (actual === undefined) return { skills: skills.toSpliced(at, 1), ops: erasing(agent, entry), result: true }
			return { skills: skills.with(at, { ...entry, status: 'quarantined', digest: actual }), result: true }
		})
		if (!changed) return undefined // another caller already handled it
		log.error({ agent: agent.name, skill: entry.name, skill_id: entry.id }, `a skill is back in quarantine: ${message}`)
		const payload = { reason, skill: entry.name, skill_id: entry.id, message }
		await emit({ event_type: 'security.violation', payload }, agent.name)
		return undefined
	}

	return {
		/**
		 * The approved document and the list of files. If they have changed, or the document violates rules that the gateway did not
		 * have when it accepted the document, emits `security.violation` and returns undefined. The skill then returns to quarantine,
		 * or is removed if its document is missing.
		 */
		async approved(agent: AgentRef, entry: IndexEntry): Promise<ApprovedSkill | undefined> {
			const [bytes, listing] = await Promise.all([
				readStoredDocument(store, agent, entry.id),
				readListing(store, agent, entry.id),
			])
			if (!bytes) return quarantine(agent, entry, CHANGED)
			const own = infoOf({ path: DOCUMENT, bytes })
			const files = listing ?? [own]
			const isApproved = files.some((file) => file.path === DOCUMENT && file.sha256 === own.sha256)
			if (!isApproved || digestOfListing(files) !== entry.digest) return quarantine(agent, entry, CHANGED)
			const known = parsed.get(own.sha256)
			if (known) return { document: known, files }
			try {
				const document = await readDocument(bytes.toString())
				parsed.set(own.sha256, document)
				return { document, files }
			} catch (error) {
				if (!isFault(error, 'skill_invalid')) throw error
				return quarantine(agent, entry, {
					reason: 'skill_invalid',
					message: `an earlier version of the gateway accepted this document, and this one does not: ${error.message}; change it, install it again and approve it`,
				})
			}
		},
		/** The approved bytes of one of these files. If they have changed, does the same as `approved`. */
		async content(agent: AgentRef, entry: IndexEntry, files: readonly FileInfo[], path: string) {
			const file = files.find((one) => one.path === path)
			if (!file) return undefined
			const bytes =
				path === DOCUMENT
					? await readStoredDocument(store, agent, entry.id)
					: await readStoredFile(store, agent, entry.id, files, file)
			return bytes && sha256(bytes) === file.sha256 ? bytes : quarantine(agent, entry, CHANGED)
		},
	}
}
