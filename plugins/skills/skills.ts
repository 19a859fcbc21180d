/** Installs, lists, reviews, approves and removes skills. A skill is approved by the digest of its files. */
import { Fault } from '../../core/errors.ts'
import { newId, now } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type {} from '../agents/contract.ts'
import { approve } from './approval.ts'
import type { Skill, Skills, SkillSettings } from './contract.ts'
import { documentOf, readDocument } from './document.ts'
import { infoOf, textIn } from './file-kind.ts'
import { digestOfListing, listingOf } from './folder/digest.ts'
import { shownPath } from './folder/paths.ts'
import type { Library } from './library.ts'
import { toolNameFor } from './names.ts'
import type { ProgramHosts } from './hosts.ts'
import { changeIndex, entriesOf, erasing, findEntry, keys, readSkill, viewOf } from './records.ts'
import type { IndexEntry, SkillRecord } from './records.ts'
import { storingFiles } from './stored-files.ts'
import type { CallTracker } from './call-tracker.ts'
import { usableSkills } from './usable.ts'
import { programOf } from './use.ts'

type SkillDeps = Pick<Context<SkillSettings>, 'store' | 'emit' | 'use' | 'config' | 'toolbox'>

/** Limit of revisions of one name in quarantine. */
const WAITING_LIMIT = 10
const MIB = 1024 * 1024

export function skillsOf(ctx: SkillDeps, hosts: ProgramHosts, library: Library, callTracker: CallTracker): Skills {
	const { store, emit } = ctx

	const listed = async (agent: AgentRef): Promise<Skill[]> => {
		const skills = await entriesOf(store, agent)
		if (skills.length === 0) return []
		const records = new Map<string, SkillRecord>()
		const [scope, kind] = keys.record(agent, '')
		for await (const { value } of store.list<SkillRecord>([scope, kind ?? ''])) records.set(value.id, value)
		return skills.flatMap((entry) => {
			const record = records.get(entry.id)
			return record ? [viewOf(entry, record)] : []
		})
	}

	return {
		list: listed,
		async active(agent) {
			const skills = await entriesOf(store, agent)
			return skills.flatMap(({ id, name, status }) => (status === 'active' ? { id, name } : []))
		},
		usable: (agent) => usableSkills(store, library, agent),

		async install(agent, { files, left_out }, source) {
			const document = await readDocument(documentOf(files))
			if (document.program) await hosts.check(agent.uid, programOf(document))
			const { name, description } = document
			const id = newId()
			const digest = digestOfListing(files.map(listingOf))
			const size = files.reduce((sum, file) => sum + file.bytes.length, 0)
			const record: SkillRecord = {
				id,
				description,
				source,
				size,
				...(left_out.length > 0 && { left_out }),
				installed_at: now(),
				approved_at: null,
				approved_by: null,
			}
			const entry = await changeIndex(store, agent, (skills) => {
				checkRoom(skills, { name, size }, ctx.config)
				const tool =
					skills.find((one) => one.name === name)?.tool ??
					toolNameFor(name, (taken) => skills.some((one) => one.tool === taken))
				const added: IndexEntry = { id, name, tool, status: 'quarantined', digest, size }
				return {
					skills: [...skills, added],
					ops: [{ key: keys.record(agent, id), value: record, expect: null }, ...storingFiles(agent, id, files)],
					result: added,
				}
			})
			// A query may contain a token.
			const from = source.kind === 'url' ? { url: source.url.split(/[?#]/, 1)[0] } : {}
			const payload = { skill: name, skill_id: id, digest, files: files.length, source: source.kind, ...from }
			await emit({ event_type: 'skill.installed', payload }, agent.name)
			return viewOf(entry, record)
		},

		async review(agent, skill_id) {
			const { reviewOf } = await import('./review.ts') // scan and diff are heavy, and rarely needed
			const skills = await entriesOf(store, agent)
			const entry = findEntry(skills, agent, skill_id)
			const stored = await readSkill(store, agent, entry)
			const active =
				entry.status === 'active' ? undefined : skills.find((one) => one.name === entry.name && one.status === 'active')
			const primitives = (await ctx.toolbox.list(agent)).filter((tool) => !tool.events).map((tool) => tool.name)
			return reviewOf(entry, stored, active && (await readSkill(store, agent, active)), new Set(primitives))
		},

		async file(agent, skill_id, path) {
			const entry = findEntry(await entriesOf(store, agent), agent, skill_id)
			const file = (await readSkill(store, agent, entry)).files.find((one) => one.path === path)
			if (!file) {
				const hint = {
					route: 'GET /v1/agents/{id}/skills/{skill_id}',
					params: { id: agent.name, skill_id },
					does: 'lists its files',
				}
				throw new Fault('not_found', `the skill "${entry.name}" has no file "${shownPath(path)}"`, { hint })
			}
			const text = textIn(file.bytes)
			const content = text === undefined ? { base64: Buffer.from(file.bytes).toString('base64') } : { text }
			return { ...infoOf(file), ...content }
		},

		approve: (agent, skill_ids, approver) => approve(ctx, agent, skill_ids, approver),

		async approveReviewed(agent, skill_id, digest, approver) {
			await approve(ctx, agent, [skill_id], { ...approver, digest })
			const entry = findEntry(await entriesOf(store, agent), agent, skill_id)
			return viewOf(entry, (await readSkill(store, agent, entry)).record)
		},

		async remove(agent, skill_id) {
			const { name, status } = await changeIndex(store, agent, (skills) => {
				const entry = findEntry(skills, agent, skill_id)
				return { skills: skills.filter((one) => one !== entry), ops: erasing(agent, entry), result: entry }
			})
			callTracker.end(skill_id, new Fault('permission_denied', 'the skill was removed during the call'))
			await emit({ event_type: 'skill.removed', payload: { skill: name, skill_id, status } }, agent.name)
		},
	}
}

function checkRoom(
	skills: readonly IndexEntry[],
	{ name, size }: { name: string; size: number },
	{ max_per_agent, max_mib_per_agent }: SkillSettings,
): void {
	const waiting = skills.filter((one) => one.name === name && one.status === 'quarantined')
	if (waiting.length >= WAITING_LIMIT) {
		throw new Fault(
			'conflict',
			`${waiting.length} revisions of "${name}" are waiting for approval; remove one of them first, such as ${waiting[0]?.id}`,
		)
	}
	if (skills.length >= max_per_agent) {
		throw new Fault(
			'conflict',
			`the agent has ${skills.length} skills, but skills.max_per_agent allows ${max_per_agent}; remove one first`,
		)
	}
	const bytes = skills.reduce((sum, one) => sum + (one.size ?? 0), size)
	if (bytes <= max_mib_per_agent * MIB) return
	throw new Fault(
		'conflict',
		`the skills of the agent would have ${Math.ceil(bytes / MIB)} MiB, but skills.max_mib_per_agent allows ${max_mib_per_agent}; remove one first`,
	)
}
