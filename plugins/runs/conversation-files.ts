/** The files of a conversation by what a model calls them. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Attachment } from '../../core/protocol.ts'
import type { Blobs } from '../attachments/contract.ts'
import type { RunRecord } from './contract.ts'
import { newestFirst } from './conversation.ts'
import type { JournalStep } from './journal-step.ts'

/** Turns that are looked through, newest first. */
const TURNS = 200
/** Files that are named to a model which asked for another. */
const NAMED = 20
/** The beginning of a digest: shorter ones could be words. */
const DIGEST = /^(?:sha256:)?([0-9a-f]{8,64})$/

type NamedFile = Pick<Attachment, 'blob' | 'media_type'> & { name: string }

/**
 * The newest file of that name, or the one whose digest is or begins with `wanted`. `steps`: of the run that asks, whose record has
 * no files of tools. Throws `not_found` with the names that there are.
 */
export async function fileOfConversation(
	{ store, use }: Pick<Context, 'store' | 'use'>,
	agent: AgentRef,
	conversation: string,
	steps: readonly JournalStep[],
	wanted: string,
): Promise<NamedFile> {
	const [, digest] = DIGEST.exec(wanted) ?? []
	const seen = new Map<string, NamedFile>()
	const matching = (found: Pick<Attachment, 'blob' | 'media_type' | 'name'>): NamedFile | undefined => {
		const file = { blob: found.blob, media_type: found.media_type, name: found.name ?? defaultName(found.media_type) }
		seen.set(`${file.blob} ${file.name}`, file)
		const isIt = file.name === wanted || (digest !== undefined && file.blob.startsWith(`sha256:${digest}`))
		return isIt ? file : undefined
	}
	for (const step of steps.toReversed()) {
		for (const one of step.kind === 'tool' ? (step.attachments ?? []) : []) {
			const found = matching(one)
			if (found) return found
		}
	}
	let turns = 0
	for await (const run of newestFirst(store, agent, conversation)) {
		if (++turns > TURNS) break
		for (const one of await filesOfRun(use('attachments').blobs, run)) {
			const found = matching(one)
			if (found) return found
		}
	}
	const names = [...seen.values()]
		.slice(0, NAMED)
		.map(({ name, blob }) => `${JSON.stringify(name)} (${blob.slice(0, 19)})`)
	throw new Fault(
		'not_found',
		`this conversation has no file ${JSON.stringify(wanted.slice(0, 200))}; there are: ${names.join(', ') || 'none'}`,
	)
}

/** What came with its prompt, what its answer has, and by their blobs alone what its tools returned. */
async function filesOfRun(
	blobs: Blobs,
	{ agent_uid, run_id, attachments = [], files = [] }: RunRecord,
): Promise<Pick<Attachment, 'blob' | 'media_type' | 'name'>[]> {
	const known = [...attachments, ...files]
	for (const used of await blobs.usedBy(agent_uid, run_id))
		if (!known.some(({ blob }) => blob === used.blob)) known.push({ type: 'file', ...used })
	return known
}

/** Of a file that has none, such as a photo of a chat: `image.png`. */
export function defaultName(media_type: string): string {
	const [kind = 'file', subtype = ''] = media_type.split('/')
	const ending = /^[a-z0-9]{1,5}/.exec(subtype.replace(/^x-/, ''))?.[0]
	const word = kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'file'
	return ending === undefined ? word : `${word}.${ending}`
}
