import type { EventEnvelope } from '../../../core/store/ports.ts'
import type { Output, Progress, Style } from '../../../core/cli/contract.ts'
import { plainStream } from '../../../core/cli/plain-stream.ts'

export interface RunView {
	/** Shows a spinner until the run has output. */
	wait(): void
	/** Shows an event of the run. */
	show(event: EventEnvelope): void
	/** Shows buffered text, ends its line, and removes the spinner. */
	rest(): void
	/** Shows the run's whole answer, unless it was already shown. */
	finish(answer: string | null): void
}

/** Characters of the arguments that are shown. */
const ARGUMENTS_LIMIT = 100

/**
 * Shows a run live: the answer on standard output, with its Markdown rendered on a terminal, and everything else as short lines
 * on standard error. Pieces of an answer can be missed, since they are not stored: these are written when the whole answer
 * arrives. A spinner is shown before the first word and between tool calls.
 */
export async function runView(out: Output): Promise<RunView> {
	const { style } = out
	const text =
		out.richColumns === null
			? plainStream()
			: (await import('../../../core/cli/markdown-stream.ts')).markdownStream(() => out.richColumns ?? 80)
	/** The current answer so far. */
	let answer = ''
	let latest: string | undefined
	let atLineStart = true
	let waiting: Progress | undefined

	const write = (shown: string): void => {
		if (shown === '') return
		waiting?.done()
		waiting = undefined
		out.write(shown)
		atLineStart = shown.endsWith('\n')
	}
	const take = (piece: string): void => {
		answer += piece
		write(text.write(piece))
	}
	const rest = (): void => {
		write(text.flush())
		if (!atLineStart) write('\n')
		waiting?.done()
		waiting = undefined
	}
	const note = (line: string): void => {
		rest()
		out.note(style.dim(line))
		wait()
	}
	const wait = (): void => void (waiting ??= out.progress('thinking …', { terminalOnly: true }))
	const beginAnew = (why: string): void => {
		if (answer !== '') note(`  (${why}; the answer starts over)`)
		answer = ''
	}
	const whole = (content: string): void => {
		if (!content.startsWith(answer)) beginAnew('the connection was lost')
		take(content.slice(answer.length))
		rest()
		answer = ''
		latest = content
	}

	return {
		wait,
		rest,
		finish(content) {
			if (content !== null && content !== '' && content !== latest) whole(content)
			rest()
		},
		show({ event_type, payload, run_id }) {
			const of = (key: string): string => style.plain(String(payload[key] ?? ''))
			switch (event_type) {
				case 'model.stream':
					return take(String(payload.content))
				case 'message.assistant':
					return whole(String(payload.content))
				case 'model.queued':
					return note(`  (waits for other calls of ${of('provider')})`)
				case 'model.retry':
					return beginAnew(of('message'))
				case 'model.fallback':
					beginAnew(of('message'))
					return note(`  (${of('from')} failed; asking ${of('to')})`)
				case 'run.completed':
					return fileNames(payload).forEach((name) =>
						note(`  + ${style.plain(name)} (svc runs files ${run_id} --to .)`),
					)
				case 'run.resumed':
					if (payload.reason === 'restart') beginAnew('the gateway was restarted')
					return wait()
			}
			const tool = toolOf(payload)
			if (tool === undefined || payload.primitive === 'ask') return
			if (calls.has(event_type)) note(`  → ${style.plain(tool)} ${argumentsOf(payload, style)}`.trimEnd())
			else if (failures.has(event_type)) note(`  ✗ ${style.plain(tool)}: ${of('message')}`)
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

function fileNames({ files }: Record<string, unknown>): string[] {
	return Array.isArray(files) ? files.map(({ name }: { name?: unknown }) => String(name)) : []
}

function argumentsOf(payload: Record<string, unknown>, style: Style): string {
	const given = typeof payload.arguments === 'string' && payload.arguments !== '{}' ? payload.arguments : ''
	return style.plain(given.length > ARGUMENTS_LIMIT ? `${given.slice(0, ARGUMENTS_LIMIT)}…` : given)
}
