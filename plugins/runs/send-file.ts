/** `conversation.send_file`: adds a file to the answer of a run: one of the conversation, or a text that the model writes. */
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import type { AgentRef, Context, ToolCall, ToolDefinition } from '../../core/plugin.ts'
import { decodeText, isTextType } from '../../sandbox/text-type.ts'
import type { Attachment } from '../../core/protocol.ts'
import { namesHidden } from '../../core/redactor/redactor.ts'
import { changeRecord } from '../../core/store/change.ts'
import type { AttachmentSource } from '../attachments/contract.ts'
import type { AnswerFile, RunRecord } from './contract.ts'
import { newestFirst } from './conversation.ts'
import type { JournalStep } from './journal-step.ts'
import { keys } from './keys.ts'
import { isEnded } from './run-state.ts'
import { siteOf } from './tool-call.ts'

const NAME = 'conversation.send_file'
/** Files of one answer. */
const FILES = 10
/** Characters of a file that the model writes. */
const TEXT = 100_000
const MIB = 1024 * 1024
/** Turns that are searched, newest first. */
const TURNS = 200
/** Names that the error lists. */
const NAMED = 20
/** The beginning of a digest: shorter ones could be words. */
const DIGEST = /^(?:sha256:)?([0-9a-f]{8,64})$/

/** Triggers of runs whose answers can only be text. */
const WITHOUT_FILES = new Set(['chat', 'openai', 'mcp', 'subagent', 'summary', 'compaction'])

type SendDeps = Pick<Context, 'primitive' | 'store' | 'use'>

export function addSendFile(ctx: SendDeps): void {
	ctx.primitive({
		name: NAME,
		description:
			'Sends a file to the people you talk to, together with your answer: one of this conversation, or a text that you write.',
		parameters: Joi.object({
			file: Joi.string().min(1).max(300).description('The name or digest of a file of this conversation.'),
			text: Joi.string().min(1).max(TEXT).description('The content of a new file, such as CSV or Markdown.'),
			name: Joi.string().min(1).max(200).description('File name, such as report.csv; required with text.'),
		})
			.xor('file', 'text')
			.with('text', 'name'),
		run: (args, call) => sendFile(ctx, args as unknown as WantedFile, call),
	})
}

/** Whether the answer of a run can have files. */
export function isOffered({ name }: Pick<ToolDefinition, 'name'>, { trigger }: Pick<RunRecord, 'trigger'>): boolean {
	return name !== NAME || !WITHOUT_FILES.has(trigger)
}

type WantedFile = { name?: string } & ({ file: string; text?: undefined } | { text: string })

/** May be repeated: the same file is added once. */
async function sendFile(ctx: SendDeps, wanted: WantedFile, call: ToolCall): Promise<unknown> {
	const { agent, run_id } = call
	const taken = await ctx.use('attachments').take(agent, [await sourceOf(ctx, wanted, call)])
	const [stored] = taken as [Attachment]
	const file: AnswerFile = { ...stored, name: stored.name ?? defaultName(stored.media_type) }
	const { max_mib_per_message } = ctx.use('attachments').limits
	const files = await changeRecord<RunRecord, number>(ctx.store, keys.run(agent.uid, run_id), async (run) => {
		if (!run || isEnded(run.status)) throw new Fault('stopped', 'the run has ended')
		if (WITHOUT_FILES.has(run.trigger))
			throw new Fault('permission_denied', 'the answer of this run cannot have files; put the content into its text')
		const before = run.files ?? []
		if (before.some(({ blob, name }) => blob === file.blob && name === file.name)) return { result: before.length }
		if (before.length === FILES)
			throw new Fault('invalid_request', `an answer can have ${FILES} files; put several into one`)
		if (before.reduce((sum, { size }) => sum + size, file.size) > max_mib_per_message * MIB)
			throw new Fault(
				'payload_too_large',
				`the files of an answer can have ${max_mib_per_message} MiB together; leave this one out, or send it with your next answer`,
			)
		const { ops } = await ctx.use('attachments').blobs.use(agent.uid, run_id, [file])
		return { next: { ...run, files: [...before, file] }, ops, result: before.length + 1 }
	})
	const { name, blob, media_type, size } = file
	return { sent_with_answer: { name, blob, media_type, size }, files }
}

/** Secrets and their names are redacted in text files and file names. */
async function sourceOf(ctx: SendDeps, wanted: WantedFile, call: ToolCall): Promise<AttachmentSource> {
	const { agent, conversation } = call
	const { redactor, journal } = siteOf(call).log
	const safe = (text: string): string => namesHidden.text(redactor.text(text, 'record'))
	if (wanted.text !== undefined) return { bytes: Buffer.from(safe(wanted.text)), name: safe(wanted.name ?? '') }
	const { file, name } = wanted as { file: string; name?: string }
	const found = await fileOfConversation(ctx, agent, conversation, journal.steps, file)
	const as = { name: safe(name ?? found.name) }
	if (!isTextType(found.media_type) || !redactor.active) return { blob: found.blob, ...as }
	const bytes = await ctx.use('attachments').blobs.read(agent.uid, found.blob)
	const text = bytes ? decodeText(bytes) : ''
	const shown = safe(text)
	return shown === text
		? { blob: found.blob, ...as }
		: { bytes: Buffer.from(shown), media_type: found.media_type, ...as }
}

type FoundFile = Pick<Attachment, 'blob' | 'media_type' | 'name'>
type NamedFile = FoundFile & { name: string }

/**
 * Returns the newest file with the name `wanted`, or whose digest begins with it. `steps`: the journal of the current run, which
 * has the files that its tools returned. Throws `not_found`, which lists the existing files.
 */
async function fileOfConversation(
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
	for await (const { run_id, attachments = [], files = [] } of newestFirst(store, agent, conversation)) {
		if (++turns > TURNS) return
		const named = [...attachments, ...files]
		yield* named
		// Without names: the blobs that its tools returned.
		for (const used of await use('attachments').blobs.usedBy(agent.uid, run_id))
			if (!named.some(({ blob }) => blob === used.blob)) yield used
	}
}

/** A name such as `image.png` for a file without one, such as a photo from a chat. */
function defaultName(media_type: string): string {
	const [kind = 'file', subtype = ''] = media_type.split('/')
	const ending = /^[a-z0-9]{1,5}/.exec(subtype.replace(/^x-/, ''))?.[0]
	const word = kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'file'
	return ending === undefined ? word : `${word}.${ending}`
}
