/** Finds a file of a conversation by the name or digest that a model gives. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Attachment } from '../../core/protocol.ts'
import type { Blobs } from '../attachments/contract.ts'
import type { RunRecord } from './contract.ts'
import { newestFirst } from './conversation.ts'
import type { JournalStep } from './journal-step.ts'

/** Turns that are searched, newest first. */
const TURNS = 200
/** Names that the error lists. */
const NAMED = 20
/** The beginning of a digest: shorter ones could be words. */
const DIGEST = /^(?:sha256:)?([0-9a-f]{8,64})$/

type FoundFile = Pick<Attachment, 'blob' | 'media_type' | 'name'>
type NamedFile = FoundFile & { name: string }

/**
 * Returns the newest file with the name `wanted`, or whose digest begins with it. `steps`: the journal of the current run, which
 * has the files that its tools returned. Throws `not_found`, which lists the existing files.
 */
export async function fileOfConversation(
	ctx: Pick<Context, 'store' | 'use'>,
	agent: AgentRef,
	conversation: string,
	steps: readonly JournalStep[],
	wanted: string,
): Promise<NamedFile> {
	const [, digest] = DIGEST.exec(wanted) ?? []
	const seen = new Map<string, NamedFile>()
	for await (const { blob, media_type, name = defaultName(media_type) } of filesOf(ctx, agent, conversation, steps)) {
		const file = { blob, media_type, name }
		if (name === wanted || (digest !== undefined && blob.startsWith(`sha256:${digest}`))) return file
		seen.set(`${blob} ${name}`, file)
	}
	const names = [...seen.values()]
		.slice(0, NAMED)
		.map(({ name, blob }) => `${JSON.stringify(name)} (${blob.slice(0, 19)})`)
	throw new Fault(
		'not_found',
		`this conversation has no file ${JSON.stringify(wanted.slice(0, 200))}; there are: ${names.join(', ') || 'none'}`,
	)
}

/** Newest first. */
async function* filesOf(
	{ store, use }: Pick<Context, 'store' | 'use'>,
	agent: AgentRef,
	conversation: string,
	steps: readonly JournalStep[],
): AsyncGenerator<FoundFile> {
	for (const step of steps.toReversed()) if (step.kind === 'tool') yield* step.attachments ?? []
	let turns = 0
	for await (const run of newestFirst(store, agent, conversation)) {
		if (++turns > TURNS) return
		yield* await filesOfRun(use('attachments').blobs, run)
	}
}

/** The attachments of the prompt, the files of the answer, and, without names, the blobs that its tools returned. */
async function filesOfRun(
	blobs: Blobs,
	{ agent_uid, run_id, attachments = [], files = [] }: RunRecord,
): Promise<FoundFile[]> {
	const known = [...attachments, ...files]
	for (const used of await blobs.usedBy(agent_uid, run_id))
		if (!known.some(({ blob }) => blob === used.blob)) known.push({ type: 'file', ...used })
	return known
}

/** A name such as `image.png` for a file without one, such as a photo from a chat. */
export function defaultName(media_type: string): string {
	const [kind = 'file', subtype = ''] = media_type.split('/')
	const ending = /^[a-z0-9]{1,5}/.exec(subtype.replace(/^x-/, ''))?.[0]
	const word = kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'file'
	return ending === undefined ? word : `${word}.${ending}`
}
