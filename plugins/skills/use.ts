/** Executes a call of an approved skill: returns its instructions, or runs its program. */
import { Fault, isFault } from '../../core/errors.ts'
import type { Context, ToolCall } from '../../core/plugin.ts'
import type { Program } from '../../sandbox/host-protocol.ts'
import { someOf } from '../../core/util/some-of.ts'
import { wireName } from '../../sandbox/wire-name.ts'
import type { SkillDocument } from './document.ts'
import type { FileInfo } from './file-kind.ts'
import { DOCUMENT } from './folder/contract.ts'
import { callHandler } from './call-handler.ts'
import type { ProgramHosts } from './hosts.ts'
import { READ_FILE } from './read-file.ts'
import { scriptsNote } from './scripts.ts'

export interface Use {
	skill_id: string
	document: SkillDocument
	/** All files, including the document. */
	files: readonly FileInfo[]
	/** Checked arguments. */
	args: Record<string, unknown>
	call: ToolCall
	signal: AbortSignal
}

type UseDeps = Pick<Context, 'find' | 'use' | 'toolbox' | 'log' | 'redactor'>

/** Limit of a logged line and of an error message, in characters. */
const SHOWN_LENGTH = 1000
/** Limit of characters of logged lines in one event. */
const LOGGED_LIMIT = 8 * 1024
/** Limit of the undeclared secrets that the events and the note of a call name. */
const TOLD_LIMIT = 10

export function useSkill(ctx: UseDeps, hosts: ProgramHosts, use: Use): unknown {
	return use.document.program ? runProgram(ctx, hosts, use) : instructions(use)
}

/** The program, preceded by empty lines, so that errors have the line numbers of the document. */
export function programOf({ program }: SkillDocument): Program {
	if (!program) throw new TypeError('instructions are not a program')
	const { code, language, line } = program
	return { code: '\n'.repeat(line - 1) + code, language }
}

/** In the form of the Agent Skills standard, so that a model can distinguish a skill from its conversation. */
function instructions({ document: { name, parameters, body }, files, args }: Use): string {
	const given = JSON.stringify(args).replaceAll('<', '\\u003c')
	const note = scriptsNote(files, body)
	const parts = [
		...(parameters.length > 0 ? [`<skill_arguments>${given}</skill_arguments>`] : []),
		body.trim(),
		...filesPart(name, files),
		...(note === undefined ? [] : [`<skill_note>${note}</skill_note>`]),
	]
	return `<skill_content name="${attribute(name)}">\n${parts.join('\n')}\n</skill_content>`
}

function filesPart(name: string, files: readonly FileInfo[]): string[] {
	const others = files.filter((file) => file.path !== DOCUMENT)
	if (others.length === 0) return []
	const what = { document: '', text: '', script: ', a script that cannot run here', binary: ', not text' }
	const lines = others.map(({ path, size, kind }) => `${attribute(path)} (${size} bytes${what[kind]})`)
	const how = `Read those that you need with ${wireName(READ_FILE)}, skill ${JSON.stringify(name)} and one of these paths:`
	return ['<skill_files>', how, ...lines, '</skill_files>']
}

async function runProgram(ctx: UseDeps, hosts: ProgramHosts, use: Use): Promise<unknown> {
	const { args, note } = await withSecrets(ctx, use)
	const notes = [...filesPart(use.document.name, use.files), ...(note === '' ? [] : [note])].join('\n')
	if (notes === '') return runWith(args, ctx, hosts, use)
	try {
		const result = await runWith(args, ctx, hosts, use)
		return `${typeof result === 'string' ? result : JSON.stringify(result)}\n\n${notes}`
	} catch (error) {
		throw isFault(error) && note !== '' ? new Fault(error.code, `${error.message} ${note}`, { cause: error }) : error
	}
}

/**
 * Replaces the handles of declared secrets by their values. Other handles stay, and the note names the undeclared secrets. A
 * handle whose grant has hosts stays too: the program can send it with svc.fetch, which replaces it.
 */
async function withSecrets(
	ctx: UseDeps,
	{ document: { name, permissions }, args, call: { agent, emit } }: Use,
): Promise<{ args: Record<string, unknown>; note: string }> {
	const vault = ctx.find('vault')
	if (!vault) return { args, note: '' }
	const via = `skill:${name}`
	const names = vault.named(args)
	const undeclared = names.filter((secret) => !permissions.secrets.includes(secret))
	for (const secret of undeclared.slice(0, TOLD_LIMIT))
		emit({ event_type: 'vault.denied', payload: { secret, via, reason: 'undeclared' } })
	const given = new Set<string>()
	for (const secret of permissions.secrets)
		if (names.includes(secret) && !(await vault.hostsOf(secret, agent))) given.add(secret)
	return { args: await vault.fill(args, { agent, via, emit }, given), note: noteOn(undeclared) }
}

function noteOn(undeclared: readonly string[]): string {
	if (undeclared.length === 0) return ''
	const handles = undeclared.map((name) => `{{secret:${name}}}`)
	return `[Note from the gateway: the skill got ${someOf(handles, TOLD_LIMIT)} unchanged instead of the value, since it does not declare the secret under permissions.secrets.]`
}

async function runWith(args: Use['args'], ctx: UseDeps, hosts: ProgramHosts, use: Use): Promise<unknown> {
	const { skill_id, document, call, signal } = use
	const { name, permissions } = document
	const { agent, emit, run_id } = call
	const shown = (text: string): string => ctx.redactor.of([agent]).cut(text, SHOWN_LENGTH, 'event').text
	const lines: string[] = []
	let logged = 0
	try {
		return await hosts.run({
			owner: agent.uid,
			program: programOf(document),
			args,
			signal: AbortSignal.any([call.signal, signal]),
			called: callHandler(ctx, { skill: name, skill_id, permissions, call }),
			logged(whole) {
				ctx.log.debug({ skill: name, skill_id, run_id, agent: agent.name, text: whole }, 'a skill logs')
				if (logged > LOGGED_LIMIT) return
				const text = shown(whole)
				logged += text.length
				lines.push(logged > LOGGED_LIMIT ? '… [the rest is in the log of the gateway, at level debug]' : text)
			},
		})
	} catch (error) {
		if (isFault(error) && error.code.startsWith('sandbox_')) {
			const about = { agent: agent.name, skill: name, code: error.code, run_id }
			ctx.log.warn(about, `a call of a skill failed: ${error.message}`)
		}
		if (isFault(error) && error.message.length > SHOWN_LENGTH)
			throw new Fault(error.code, shown(error.message), { cause: error })
		throw error
	} finally {
		if (lines.length > 0) emit({ event_type: 'skill.logged', payload: { skill: name, skill_id, lines } })
	}
}

function attribute(text: string): string {
	return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
