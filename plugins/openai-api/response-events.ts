/** A response as a stream of OpenAI's events. */
import { toWire } from '../../core/errors.ts'
import { messageItem, outputOf, textPart, viewOf } from './response.ts'
import type { StreamFormat } from './serve.ts'
import type { ResponseEnd, StoredResponse } from './stored.ts'

/** `record`: the caller sets its `run_id` when the run starts. `ended`: stores the end; the last events are sent after it. */
export function eventsOf(record: StoredResponse, ended: (end: ResponseEnd) => Promise<void>): StreamFormat {
	let sequence_number = 0
	let hasText = false
	const { id } = record
	const item_id = messageItem(id, null, 'in_progress').id
	const inText = { item_id, output_index: 0, content_index: 0 }
	const frame = (type: string, fields: object): string =>
		`event: ${type}\ndata: ${JSON.stringify({ type, ...fields, sequence_number: sequence_number++ })}\n\n`

	const openText = (): string => {
		if (hasText) return ''
		hasText = true
		return (
			frame('response.output_item.added', { output_index: 0, item: messageItem(id, null, 'in_progress') }) +
			frame('response.content_part.added', { ...inText, part: textPart('') })
		)
	}
	const closeText = (text: string, item: object): string =>
		openText() +
		frame('response.output_text.done', { ...inText, text, logprobs: [] }) +
		frame('response.content_part.done', { ...inText, part: textPart(text) }) +
		frame('response.output_item.done', { output_index: 0, item })
	const call = (item: Record<string, unknown>, output_index: number): string => {
		const place = { item_id: item.id, output_index }
		const begun = { ...item, status: 'in_progress', arguments: '' }
		return (
			frame('response.output_item.added', { output_index, item: begun }) +
			frame('response.function_call_arguments.delta', { ...place, delta: item.arguments }) +
			frame('response.function_call_arguments.done', { ...place, name: item.name, arguments: item.arguments }) +
			frame('response.output_item.done', { output_index, item })
		)
	}

	return {
		begin: () =>
			frame('response.created', { response: viewOf(record) }) +
			frame('response.in_progress', { response: viewOf(record) }),
		piece: (delta) => openText() + frame('response.output_text.delta', { ...inText, delta, logprobs: [] }),
		async end(answer) {
			const end = { at: seconds(), answer }
			await ended(end)
			const items = outputOf(id, answer).map((item, at) =>
				item.type === 'message' ? closeText(answer.text, item) : call(item, at),
			)
			const response = viewOf({ ...record, end })
			return items.join('') + frame(`response.${String(response.status)}`, { response })
		},
		async failed(fault) {
			const end = { at: seconds(), error: toWire(fault) }
			await ended(end)
			return frame('response.failed', { response: viewOf({ ...record, end }) })
		},
	}
}

export function seconds(): number {
	return Math.floor(Date.now() / 1000)
}
