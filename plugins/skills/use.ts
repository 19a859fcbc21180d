/** One call of an approved skill: an instruction to read, or a program to run. */
import { isFault } from '../../core/errors.ts'
import type { Context, ToolCall } from '../../core/plugin.ts'
import type { SkillDocument } from './document.ts'
import { powersOf } from './powers.ts'
import type { Program, ProgramHosts } from './program.ts'

export interface Use {
	skill_id: string
	document: SkillDocument
	/** Checked. */
	args: Record<string, unknown>
	call: ToolCall
	signal: AbortSignal
}

type Place = Pick<Context, 'find' | 'use' | 'toolbox' | 'log'>

/** Characters of logged lines that one event carries. */
const LOGGED_LIMIT = 8 * 1024

export function useSkill(ctx: Place, hosts: ProgramHosts, use: Use): unknown {
	return use.document.program ? runProgram(ctx, hosts, use) : instructions(use)
}

/** With lines that count as the document's do, for its errors. */
export function programOf({ program }: SkillDocument): Program {
	if (!program) throw new TypeError('instructions are no program')
	const { code, language, line } = program
	return { code: '\n'.repeat(line - 1) + code, language }
}

/** As the Agent Skills standard has it, for a model to tell it from its own conversation. */
function instructions({ document: { name, parameters, body }, args }: Use): string {
	const given = JSON.stringify(args).replaceAll('<', '\\u003c')
	const about = parameters.length > 0 ? `<skill_arguments>${given}</skill_arguments>\n` : ''
	return `<skill_content name="${attribute(name)}">\n${about}${body.trim()}\n</skill_content>`
}

async function runProgram(ctx: Place, hosts: ProgramHosts, use: Use): Promise<unknown> {
	const { skill_id, document, args, call, signal } = use
	const { name, permissions } = document
	const { agent, emit, run_id } = call
	const lines: string[] = []
	let logged = 0
	const filled = (await ctx.find('vault')?.fill(args, { agent, via: `skill:${name}`, emit })) ?? args
	try {
		return await hosts.run({
			program: programOf(document),
			args: filled,
			signal: AbortSignal.any([call.signal, signal]),
			called: powersOf(ctx, { skill: name, skill_id, permissions, call }),
			logged(text) {
				ctx.log.debug({ skill: name, skill_id, run_id, agent: agent.name, text }, 'a skill logs')
				if (logged > LOGGED_LIMIT) return
				logged += text.length
				lines.push(logged > LOGGED_LIMIT ? '… [more stands in the log of the gateway, at level debug]' : text)
			},
		})
	} catch (error) {
		if (isFault(error) && error.code.startsWith('sandbox_')) {
			const about = { agent: agent.name, skill: name, code: error.code, run_id }
			ctx.log.warn(about, `a call of a skill failed: ${error.message}`)
		}
		throw error
	} finally {
		if (lines.length > 0) emit({ event_type: 'skill.logged', payload: { skill: name, skill_id, lines } })
	}
}

function attribute(text: string): string {
	return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
