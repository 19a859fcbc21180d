/** Selects and makes the next tool calls of an answer. */
import type { Step, ToolCallRequest, ToolReply } from '../core/protocol.ts'

/** Limit of concurrent calls of one run. */
const LIMIT = 8

/**
 * The calls of the latest answer to make now: the first unfinished one and, if it may run concurrently, the following ones up to
 * the first that may not.
 */
export function nextCalls(journal: readonly Step[], concurrent: readonly string[] = []): ToolCallRequest[] {
	const open = openCalls(journal)
	const end = open.findIndex((call) => !concurrent.includes(call.name))
	return open.slice(0, end < 0 ? undefined : Math.max(1, end))
}

function openCalls(journal: readonly Step[]): ToolCallRequest[] {
	const finished = new Set<string>()
	for (const step of journal.toReversed()) {
		if (step.kind === 'model') return step.answer.tool_calls.filter((call) => !finished.has(call.id))
		if (step.kind === 'tool') finished.add(step.call_id)
	}
	return []
}

/** Makes the calls, at most 8 at a time. Settles when all have settled, and throws the first error. Replies are in the order of the calls. */
export async function makeCalls(
	calls: readonly ToolCallRequest[],
	make: (call: ToolCallRequest) => Promise<ToolReply>,
): Promise<ToolReply[]> {
	const replies: ToolReply[] = []
	const errors: unknown[] = []
	let next = 0
	const lane = async (): Promise<void> => {
		for (let at = next++; at < calls.length && errors.length === 0; at = next++) {
			try {
				replies[at] = await make(calls[at] as ToolCallRequest)
			} catch (error) {
				errors.push(error)
			}
		}
	}
	await Promise.all(Array.from({ length: Math.min(LIMIT, calls.length) }, lane))
	if (errors.length > 0) throw errors[0]
	return replies
}
