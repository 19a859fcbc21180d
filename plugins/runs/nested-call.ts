/** Calls of primitives during the call of another tool. */
import { hash } from 'node:crypto'
import { Fault, messageOf } from '../../core/errors.ts'
import { unguarded } from '../../core/events/families.ts'
import type { ToolCall, ToolDefinition } from '../../core/plugin.ts'
import { Attached, Pause } from '../../core/runs/tool.ts'
import { denied } from './call-policy.ts'
import { calledEvent, failure, siteOf, success } from './tool-call.ts'
import { parseArguments } from './tool-specs.ts'

/** As `Runs.callPrimitive`. */
export async function callNested(
	tools: readonly ToolDefinition[],
	name: string,
	args: unknown,
	call: ToolCall,
): Promise<unknown> {
	const site = siteOf(call)
	const tool = tools.find((one) => one.name === name && !one.events)
	if (!tool) throw new Fault('tool_unknown', `there is no primitive "${name}"`)
	const ruling = site.policy.ruling(tool)
	if (ruling === 'deny') throw denied(tool)
	if (ruling === 'ask')
		throw new Fault(
			'permission_denied',
			`${name} needs a person's approval, for which a program cannot wait; call it directly, or list it under config.tools.allow`,
		)
	const text = JSON.stringify(args) ?? '{}'
	const key = nestedKey(call, name, text)
	const request = { id: key.slice(call.run_id.length + 1), name, arguments: text }
	// The gateway emits these events, not the plugin that makes the outer call: so its restriction on event types does not apply.
	const emit = unguarded(call.emit)
	emit(calledEvent(tool, request, site))
	const refuse = (): never => {
		throw new Fault('permission_denied', `${name} would wait, which is not possible within the call of another tool`)
	}
	try {
		const nested: ToolCall = { ...call, emit, key, pause: refuse, ask: async () => refuse(), waitFor: refuse }
		const returned = await tool.run(parseArguments(tool, text), nested)
		if (returned instanceof Pause) refuse()
		// The caller is a program: it gets data without attachments.
		const value = returned instanceof Attached ? returned.value : returned
		const { event, content } = success(tool, request, site, value)
		emit(event)
		return typeof value === 'string' ? value : (JSON.parse(content) as unknown)
	} catch (error) {
		emit(failure(tool, request, site, error).event)
		throw error instanceof Fault ? error : new Fault('tool_failed', messageOf(error), { cause: error })
	}
}

/** The number of times that each nested call was made, by outer call. The outer tool limits its calls. */
const nestedCalls = new WeakMap<ToolCall, Map<string, number>>()

/** A key that is the same when the outer call is repeated, even if it makes its calls in another order. */
function nestedKey(call: ToolCall, name: string, args: string): string {
	const counts = nestedCalls.get(call) ?? new Map<string, number>()
	nestedCalls.set(call, counts)
	const digest = hash('sha256', `${name} ${args}`).slice(0, 16)
	const count = (counts.get(digest) ?? 0) + 1
	counts.set(digest, count)
	return `${call.key}.${digest}.${count}`
}
