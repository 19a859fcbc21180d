/** The tool `skill.read_file`, which reads the files of the agent's active skills in parts. */
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import type { AgentRef, Context, ToolCall, ToolDefinition } from '../../core/plugin.ts'
import { someOf } from '../../core/util/some-of.ts'
import { partOf } from '../shared/part-of.ts'
import { textIn } from './file-kind.ts'
import type { FileInfo } from './file-kind.ts'
import type { Library } from './library.ts'
import { entriesOf } from './records.ts'
import type { IndexEntry } from './records.ts'

export const READ_FILE = 'skill.read_file'

type ReadDeps = Pick<Context, 'store' | 'redactor' | 'use'>

interface ReadRequest {
	skill: string
	path: string
	offset?: number
	limit?: number
}

/** Characters per call, below the limit of a tool result. */
const PART = 16_000
const LARGEST_PART = 30_000
/** Limit of the paths or names in an error. */
const LISTED_LIMIT = 50

export function readFileTool(ctx: ReadDeps, library: Library): ToolDefinition {
	return {
		name: READ_FILE,
		description:
			'Reads a file of one of your skills, in parts. The result of a skill lists the paths of its files; read those that its instructions tell you to read.',
		parameters: Joi.object({
			skill: Joi.string().min(1).max(128).required().description('The name of the skill, or of its tool.'),
			path: Joi.string().min(1).max(1_000).required().description('The path of the file in the skill.'),
			offset: Joi.number().integer().min(0).description('Position of the first character; default 0.'),
			limit: Joi.number().integer().min(1).max(LARGEST_PART).description(`Number of characters; default ${PART}.`),
		}),
		repeatable: true,
		run: (args, call) => readFile(ctx, library, args as unknown as ReadRequest, call),
	}
}

async function readFile(ctx: ReadDeps, library: Library, asked: ReadRequest, { agent }: ToolCall): Promise<unknown> {
	const { skill, offset = 0, limit = PART } = asked
	const active = await readable(ctx, agent)
	const entry = active.find((one) => one.name === skill) ?? active.find((one) => one.tool === skill)
	if (!entry) {
		const names =
			someOf(
				active.map((one) => one.name),
				LISTED_LIMIT,
			) || 'none'
		throw new Fault('not_found', `there is no skill "${skill}"; yours are ${names}`)
	}
	const approved = await library.approved(agent, entry)
	if (!approved) throw notApproved(entry.name)
	const file = fileAt(approved.files, asked.path)
	if (!file) {
		const paths = someOf(
			approved.files.map((one) => one.path),
			LISTED_LIMIT,
		)
		throw new Fault('not_found', `the skill "${entry.name}" has no file "${asked.path}"; it has ${paths}`)
	}
	const bytes = await library.content(agent, entry, approved.files, file.path)
	if (!bytes) throw notApproved(entry.name)
	const about = { skill: entry.name, path: file.path }
	const text = textIn(bytes)
	if (text === undefined)
		return { ...about, note: `This file is not text (${bytes.length} bytes), so it cannot be read.` }
	// Redact before the cut: otherwise a secret could be read in two parts.
	const shown = ctx.redactor.of([agent]).text(text, 'model')
	return {
		...about,
		...partOf(shown, offset, limit),
		...(file.kind === 'script' && { note: `A script (${file.language}): it cannot run here.` }),
	}
}

/** The skills that the agent may use now. Skills that were removed or denied since the run began are excluded. */
async function readable(ctx: ReadDeps, agent: AgentRef): Promise<IndexEntry[]> {
	const agents = ctx.use('agents')
	const policy = (await agents.find(agent.name))?.config.tools
	return (await entriesOf(ctx.store, agent)).filter(
		(one) => one.status === 'active' && agents.rulingOn(policy, shownAs(one)) !== 'deny',
	)
}

/** The names that patterns of `config.tools` match. */
export function shownAs({ name, tool }: IndexEntry): { name: string; shown_as: string } {
	return { name: tool, shown_as: `skill:${name}` }
}

/** `./a.md` is the same path as `a.md`. */
function fileAt(files: readonly FileInfo[], path: string): FileInfo | undefined {
	const wanted = path.normalize('NFC').replace(/^(?:\.?\/)+/, '')
	return files.find((file) => file.path === wanted)
}

export function notApproved(name: string): Fault {
	return new Fault('permission_denied', `the skill "${name}" differs from the approved one; an operator must review it`)
}
