/** Approved documents: read from the store, checked against their digest, parsed once. */
import { hash } from 'node:crypto'
import { isFault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { readDocument } from './document.ts'
import type { SkillDocument } from './document.ts'
import { changeIndex, erasing, readText } from './records.ts'
import type { IndexEntry } from './records.ts'

/** Limit of parsed documents in memory; each at most 272 KiB of text. */
const PARSED_LIMIT = 256

const CHANGED = {
	reason: 'skill_changed',
	message: 'the stored document is not the one that was approved; review it, or remove it and install it again',
}

export interface Library {
	/**
	 * The approved document. If its text has changed, or breaks rules that the version of the gateway that accepted it
	 * did not have, the skill goes back into quarantine (or is removed if its document is missing),
	 * `security.violation` is emitted, and the result is undefined.
	 */
	approved(agent: AgentRef, entry: IndexEntry): Promise<SkillDocument | undefined>
}

export function openLibrary({ store, emit, log }: Pick<Context, 'store' | 'emit' | 'log'>): Library {
	const parsed = new BoundedMap<string, SkillDocument>(PARSED_LIMIT)

	const distrust = async (
		agent: AgentRef,
		entry: IndexEntry,
		actual: string | undefined,
		{ reason, message }: { reason: string; message: string },
	): Promise<void> => {
		const changed = await changeIndex(store, agent, (skills) => {
			const at = skills.findIndex(
				(one) => one.id === entry.id && one.status === 'active' && one.digest === entry.digest,
			)
			if (at < 0) return { result: false }
			if (actual === undefined) return { skills: skills.toSpliced(at, 1), ops: erasing(agent, entry.id), result: true }
			return { skills: skills.with(at, { ...entry, status: 'quarantined', digest: actual }), result: true }
		})
		if (!changed) return // another caller already handled it
		log.error({ agent: agent.name, skill: entry.name, skill_id: entry.id }, `a skill is back in quarantine: ${message}`)
		const payload = { reason, skill: entry.name, skill_id: entry.id, message }
		await emit({ event_type: 'security.violation', payload }, agent.name)
	}

	return {
		async approved(agent, entry) {
			const text = await readText(store, agent, entry.id)
			const actual = text === undefined ? undefined : digestOf(text)
			if (text === undefined || actual !== entry.digest) {
				await distrust(agent, entry, actual, CHANGED)
				return undefined
			}
			const known = parsed.get(entry.digest)
			if (known) return known
			try {
				const document = await readDocument(text)
				parsed.set(entry.digest, document)
				return document
			} catch (error) {
				if (!isFault(error, 'skill_invalid')) throw error
				await distrust(agent, entry, actual, {
					reason: 'skill_invalid',
					message: `an earlier version of the gateway accepted this document, and this one does not: ${error.message}; change it, install it again and approve it`,
				})
				return undefined
			}
		},
	}
}

/** sha256 of its bytes, in hex. */
export function digestOf(text: string): string {
	return hash('sha256', text)
}
