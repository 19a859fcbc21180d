/** `conversation.send_file`: adds a file to the answer of a run. */
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import type { Context, ToolCall, ToolDefinition } from '../../core/plugin.ts'
import { decodeText, isTextType } from '../../sandbox/text-type.ts'
import type { Attachment } from '../../core/protocol.ts'
import { namesHidden } from '../../core/redactor/redactor.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import type { AttachmentSource } from '../attachments/contract.ts'
import type { AnswerFile, RunRecord } from './contract.ts'
import { defaultName, fileOfConversation } from './conversation-files.ts'
import { keys } from './keys.ts'
import { isEnded } from './run-state.ts'
import { siteOf } from './tool-call.ts'

const NAME = 'conversation.send_file'
/** Files of one answer. */
const FILES = 10
/** Characters of a file that the model writes. */
const TEXT = 100_000
const MIB = 1024 * 1024

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
	const files = await change(ctx.store, agentScope(agent.uid), async () => {
		const entry = await ctx.store.get<RunRecord>(keys.run(agent.uid, run_id))
		if (!entry || isEnded(entry.value.status)) throw new Fault('stopped', 'the run has ended')
		if (WITHOUT_FILES.has(entry.value.trigger))
			throw new Fault('permission_denied', 'the answer of this run cannot have files; put the content into its text')
		const before = entry.value.files ?? []
		if (before.some(({ blob, name }) => blob === file.blob && name === file.name)) return { result: before.length }
		if (before.length === FILES)
			throw new Fault('invalid_request', `an answer can have ${FILES} files; put several into one`)
		if (before.reduce((sum, { size }) => sum + size, file.size) > max_mib_per_message * MIB)
			throw new Fault(
				'payload_too_large',
				`the files of an answer can have ${max_mib_per_message} MiB together; leave this one out, or send it with your next answer`,
			)
		const { ops } = await ctx.use('attachments').blobs.use(agent.uid, run_id, [file])
		const value: RunRecord = { ...entry.value, files: [...before, file] }
		return { ops: [{ key: entry.key, value, expect: entry.rev }, ...ops], result: before.length + 1 }
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
