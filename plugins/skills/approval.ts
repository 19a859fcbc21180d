/** Approves quarantined skills, in one commit. The approved files are exactly the reviewed ones. */
import { Fault } from '../../core/errors.ts'
import { now } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { holds } from '../shared/scopes.ts'
import type { Op } from '../../core/store/ports.ts'
import type { Approver } from '../agents/contract.ts'
import { documentOf, readDocument } from './document.ts'
import type { SkillDocument } from './document.ts'
import { digestOfListing, listingOf } from './folder/digest.ts'
import { changeIndex, erasing, findEntry, keys, readSkill } from './records.ts'
import type { IndexChange, IndexEntry } from './records.ts'

export interface Approval extends Approver {
	/** The digest of the reviewed files. Absent: approves the files that were installed. */
	digest?: string
}

const SKILLS_LIMIT = 32
/** Writes of the commit, without the write of the index. */
const WRITES_LIMIT = 99

/**
 * Approves all or none; skips active ones. Throws `not_found`, `digest_mismatch`, `skill_invalid`, `forbidden` (see
 * `checkSecretScope`), or `invalid_request` for two revisions of one name.
 */
export async function approve(
	ctx: Pick<Context, 'store' | 'emit'>,
	agent: AgentRef,
	ids: readonly string[],
	approval: Approval,
): Promise<void> {
	if (ids.length > SKILLS_LIMIT)
		throw new Fault('invalid_request', `at most ${SKILLS_LIMIT} skills can be approved at once`)
	const approved = await changeIndex(ctx.store, agent, (skills) => decide(ctx, agent, skills, ids, approval))
	for (const { entry, replaces } of approved) {
		const payload = { skill: entry.name, skill_id: entry.id, digest: entry.digest, replaces, by: approval.token_id }
		await ctx.emit({ event_type: 'skill.approved', payload }, agent.name)
	}
}

async function decide(
	{ store }: Pick<Context, 'store'>,
	agent: AgentRef,
	skills: readonly IndexEntry[],
	ids: readonly string[],
	approval: Approval,
): Promise<IndexChange<{ entry: IndexEntry; replaces: string | null }[]>> {
	const { token_id, digest: reviewed } = approval
	const wanted = new Map<string, IndexEntry>()
	const ops: Op[] = []
	const approved_at = now()
	for (const id of new Set(ids)) {
		const entry = findEntry(skills, agent, id)
		if (entry.status === 'active') {
			if (reviewed !== undefined && reviewed !== entry.digest) throw mismatch(entry)
			continue
		}
		if (wanted.has(entry.name))
			throw new Fault('invalid_request', `two of these are revisions of "${entry.name}"; approve one of them`)
		const { record, files } = await readSkill(store, agent, entry)
		const digest = digestOfListing(files.map(listingOf))
		if (digest !== (reviewed ?? entry.digest)) throw mismatch(entry)
		checkSecretScope(await readDocument(documentOf(files)), approval)
		wanted.set(entry.name, { ...entry, digest, status: 'active' })
		ops.push({ key: keys.record(agent, id), value: { ...record, approved_at, approved_by: token_id } })
	}
	if (wanted.size === 0) return { result: [] }
	const replaced = skills.filter((one) => one.status === 'active' && wanted.has(one.name))
	for (const one of replaced) ops.push(...erasing(agent, one))
	if (ops.length > WRITES_LIMIT)
		throw new Fault('invalid_request', 'these skills replace too many large skills at once; approve some of them first')
	const next = skills.flatMap((one) => {
		const entry = wanted.get(one.name)
		if (entry?.id === one.id) return [entry]
		return replaced.includes(one) ? [] : [one]
	})
	const result = [...wanted.values()].map((entry) => ({
		entry,
		replaces: replaced.find((one) => one.name === entry.name)?.id ?? null,
	}))
	return { skills: next, ops, result }
}

/**
 * Throws `forbidden` if the program gets secrets and the approver may not grant them: whoever chooses a program and its secrets can
 * have them sent to any host that the program declares.
 */
function checkSecretScope({ name, program, permissions: { secrets } }: SkillDocument, { scope }: Approver): void {
	if (!program || secrets.length === 0 || holds(scope, 'vault:write')) return
	throw new Fault(
		'forbidden',
		`the program of "${name}" gets secrets (${secrets.join(', ')}), so its approval requires the scope vault:write or *`,
	)
}

function mismatch({ id, name }: IndexEntry): Fault {
	return new Fault(
		'digest_mismatch',
		`the files of "${name}" do not have this digest; review skill ${id} again, and approve the digest that the review shows`,
	)
}
