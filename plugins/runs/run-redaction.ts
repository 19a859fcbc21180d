/** Redacts the output of one run, and reports each redacted secret in the run's events, once per sink. */
import type { NewEvent } from '../../core/protocol.ts'
import { noticesOf } from '../../core/redactor/notices.ts'
import type { TextStream, View } from '../../core/redactor/view.ts'

/** `report` receives the notices of redactions that `view` makes outside of the methods below. */
export function redactionOf(plain: View, report: (notice: NewEvent) => void) {
	let notices: NewEvent[] | null = null
	const notice = noticesOf((event) => (notices ? notices.push(event) : report(event)), Infinity)
	const view = plain.reportingTo(notice)
	let answer: TextStream | null = null
	/** The next model call continues the same answer. */
	let continues = false

	const noticing = <T>(work: () => T): { result: T; notices: NewEvent[] } => {
		const reported: NewEvent[] = (notices = [])
		try {
			return { result: work(), notices: reported }
		} finally {
			notices = null
		}
	}
	const clean = (event: NewEvent): NewEvent => {
		const payload = view.data(event.payload, 'event')
		return payload === event.payload ? event : { ...event, payload }
	}

	return {
		/** For text that leaves the run, such as for its model. */
		view,
		/** The redacted events and step. Notices of redactions in them are inserted between the events. */
		redacted<S>(events: readonly NewEvent[], step: S): { events: readonly NewEvent[]; step: S } {
			if (!view.active) return { events, step }
			const kept = noticing(() => view.data(step, 'record'))
			let pending = kept.notices
			const redacted = events.flatMap((event) => {
				const found = noticing(() => clean(event))
				const about = [...pending, ...found.notices]
				pending = []
				// The event that ends or pauses a run must be the last one.
				return event.event_type.startsWith('run.') ? [...about, found.result] : [found.result, ...about]
			})
			return { events: redacted, step: kept.result }
		},
		/** The part of a live event that can be shown now, with the notices of its redactions. `event` is null if all text is held back. */
		live(event: NewEvent): { event: NewEvent | null; notices: NewEvent[] } {
			const { content } = event.payload
			if (!view.active && !answer) return { event, notices: [] }
			if (typeof content !== 'string') {
				const found = noticing(() => clean(event))
				return { event: found.result, notices: found.notices }
			}
			const stream = (answer ??= view.stream('stream'))
			const shown = noticing(() => stream.push(content))
			return { event: shown.result === '' ? null : withContent(event, shown.result), notices: shown.notices }
		},
		/** The held-back rest of the live answer, if `next` ends it. Null if nothing remains. */
		rest(next: readonly NewEvent[]): NewEvent | null {
			const type = answer && next.find((event) => event.event_type.startsWith('model.'))?.event_type
			if (!answer || type === undefined) return null
			const isSame = type === 'model.continued' || (continues && type === 'model.request')
			continues = type === 'model.continued'
			if (isSame) return null
			// The rest of an answer that broke off is dropped: the held-back text may be most of a secret.
			const rest = type === 'model.response' ? answer.end() : ''
			answer = null
			return rest === '' ? null : { event_type: 'model.stream', payload: { content: rest } }
		},
	}
}

function withContent(event: NewEvent, content: string): NewEvent {
	return content === event.payload.content ? event : { ...event, payload: { ...event.payload, content } }
}
