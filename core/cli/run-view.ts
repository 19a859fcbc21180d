import type { EventEnvelope } from '../store/ports.ts'
import type { Output, Style } from './contract.ts'
import { inCommands } from './in-commands.ts'

export interface RunView {
	/** Shows what an event of the run tells. */
	show(event: EventEnvelope): void
	/** Ends the line in the making. */
	rest(): void
	/** Shows the run's whole answer, unless it has been shown. */
	finish(answer: string | null): void
}

/** Arguments of more characters are cut. */
const ARGUMENTS_LIMIT = 100

/**
 * What must wait for the next piece: a character that a joiner may follow, with all that is joined to it already, half a
 * surrogate pair, half a line end.
 */
const unfinished =
	/(?:(?:[^\0-\x7f](?:\ufe0e|\ufe0f)*(?:\u200c|\u200d))*[^\0-\x7f](?:\ufe0e|\ufe0f|\u200c|\u200d)*|\r)$/u
/** No more waits than this, whatever a model joins. */
const UNFINISHED_LIMIT = 64

/**
 * A run as it happens: the answer on standard output as it is made, tool calls and everything else as short lines on
 * standard error. Pieces of an answer are not kept; what was lost of them is made up for when the whole answer comes.
 */
export function runView(out: Output): RunView {
	const { style } = out
	/** The answer in the making as far as it came, and how much of it is written. */
	let answer = ''
	let written = 0
	let latest: string | undefined
	let atLineStart = true

	const write = (text: string): void => {
		if (text === '') return
		out.write(text)
		atLineStart = text.endsWith('\n')
	}
	const rest = (): void => {
		write(answer.slice(written))
		written = answer.length
		if (!atLineStart) write('\n')
	}
	const note = (text: string): void => {
		rest()
		out.note(style.dim(text))
	}
	const begin = (): void => {
		answer = ''
		written = 0
	}
	const beginAnew = (why: string): void => {
		if (answer !== '') note(`  (${why}; the answer begins anew)`)
		begin()
	}
	const whole = (content: string): void => {
		if (!content.startsWith(answer)) beginAnew('the connection was lost')
		answer = content
		rest()
		begin()
		latest = content
	}

	return {
		rest,
		finish(content) {
			if (content !== null && content !== '' && content !== latest) whole(content)
			rest()
		},
		show({ event_type, payload }) {
			const text = (key: string): string => style.plain(String(payload[key] ?? ''))
			switch (event_type) {
				case 'model.stream': {
					answer += String(payload.content)
					const waiting = unfinished.exec(answer.slice(written).slice(-UNFINISHED_LIMIT))?.[0].length ?? 0
					const end = answer.length - waiting
					write(answer.slice(written, end))
					written = end
					return
				}
				case 'message.assistant':
					return whole(String(payload.content))
				case 'model.retry':
					return beginAnew(text('message'))
				case 'model.fallback':
					beginAnew(text('message'))
					return note(`  (${text('from')} failed; asking ${text('to')})`)
				case 'run.resumed':
					return payload.reason === 'restart' ? beginAnew('the gateway was restarted') : undefined
			}
			const tool = toolOf(payload)
			if (tool === undefined || payload.primitive === 'ask') return
			if (calls.has(event_type)) note(`  → ${style.plain(tool)} ${argumentsOf(payload, style)}`.trimEnd())
			else if (failures.has(event_type)) note(`  ✗ ${style.plain(tool)}: ${inCommands(text('message'))}`)
		},
	}
}

const calls = new Set(['primitive.called', 'skill.invoked', 'mcp.called'])
const failures = new Set(['primitive.failed', 'skill.failed', 'mcp.failed'])

/** The name of a primitive, a skill or an MCP server's tool. */
function toolOf({ primitive, skill, server, tool }: Record<string, unknown>): string | undefined {
	const name = primitive ?? skill ?? (server === undefined ? undefined : `${String(server)}: ${String(tool)}`)
	return typeof name === 'string' ? name : undefined
}

function argumentsOf(payload: Record<string, unknown>, style: Style): string {
	const given = typeof payload.arguments === 'string' && payload.arguments !== '{}' ? payload.arguments : ''
	return style.plain(given.length > ARGUMENTS_LIMIT ? `${given.slice(0, ARGUMENTS_LIMIT)}…` : given)
}
