/** Documents as they were approved: read from the store, checked against their digest, parsed once. */
import { createHash } from 'node:crypto'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { Lru } from './lru.ts'
import { readDocument } from './document.ts'
import type { SkillDocument } from './document.ts'
import { changeIndex, erasing, keys } from './records.ts'
import type { IndexEntry } from './records.ts'

/** Parsed documents in memory; each at most 272 KiB of text. */
const PARSED_LIMIT = 256

export interface Library {
	/**
	 * The document that was approved. Where its text is another one by now, the skill goes back into quarantine (or away,
	 * where nothing is left of it), `security.violation` is emitted, and the answer is undefined.
	 */
	approved(agent: AgentRef, entry: IndexEntry): Promise<SkillDocument | undefined>
}

export function openLibrary({ store, emit, log }: Pick<Context, 'store' | 'emit' | 'log'>): Library {
	const parsed = new Lru<SkillDocument>(PARSED_LIMIT)

	const distrust = async (agent: AgentRef, entry: IndexEntry, actual: string | undefined): Promise<void> => {
		const changed = await changeIndex(store, agent, (skills) => {
			const at = skills.findIndex(
				(one) => one.id === entry.id && one.status === 'active' && one.digest === entry.digest,
			)
			if (at < 0) return { result: false }
			if (actual === undefined) return { skills: skills.toSpliced(at, 1), ops: erasing(agent, entry.id), result: true }
			return { skills: skills.with(at, { ...entry, status: 'quarantined', digest: actual }), result: true }
		})
		if (!changed) return // somebody else saw it first
		log.error({ agent: agent.name, skill_id: entry.id }, 'a skill is not what was approved; it is back in quarantine')
		const payload = {
			kind: 'skill_changed',
			skill: entry.name,
			skill_id: entry.id,
			message: 'the stored document is not the one that was approved; the skill is back in quarantine',
		}
		await emit({ event_type: 'security.violation', payload }, agent.name)
	}

	return {
		async approved(agent, entry) {
			const text = (await store.get<string>(keys.text(agent, entry.id)))?.value
			const actual = typeof text === 'string' ? digestOf(text) : undefined
			if (text === undefined || actual !== entry.digest) {
				await distrust(agent, entry, actual)
				return undefined
			}
			const known = parsed.get(entry.digest)
			if (known) return known
			const document = readDocument(text)
			parsed.set(entry.digest, document)
			return document
		},
	}
}

/** sha256 of its bytes, in hex. */
export function digestOf(text: string): string {
	return createHash('sha256').update(text).digest('hex')
}
