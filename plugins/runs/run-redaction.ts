/** Redacts the output of one run, and reports it in the run's own events: once for each secret and sink. */
import type { NewEvent } from '../../core/protocol.ts'
import { noticesOf } from '../../core/redactor/notices.ts'
import type { TextStream, View } from '../../core/redactor/view.ts'

/** `report` receives what happens while none of the methods is running. */
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
		/** For text of this run that goes elsewhere, such as to its model. */
		view,
		/** The redacted events, and among them those that report what was redacted in them or in `step`. */
		redacted<S>(events: readonly NewEvent[], step: S): { events: readonly NewEvent[]; step: S } {
			if (!view.active) return { events, step }
			const kept = noticing(() => view.data(step, 'record'))
			let pending = kept.notices
			const redacted = events.flatMap((event) => {
				const found = noticing(() => clean(event))
				const about = [...pending, ...found.notices]
				pending = []
				// The event that ends or pauses a run is its last.
				return event.event_type.startsWith('run.') ? [...about, found.result] : [found.result, ...about]
			})
			return { events: redacted, step: kept.result }
		},
		/** What can be shown of a live event so far, with the events that report its redactions; empty if all of it is held back. */
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
		/** The rest of the unfinished answer, which is complete with `next`. Null if nothing remains. */
		rest(next: readonly NewEvent[]): NewEvent | null {
			const type = answer && next.find((event) => event.event_type.startsWith('model.'))?.event_type
			if (!answer || type === undefined) return null
			const isSame = type === 'model.continued' || (continues && type === 'model.request')
			continues = type === 'model.continued'
			if (isSame) return null
			// An answer that broke off shows nothing more: what is held back may be most of a secret.
			const rest = type === 'model.response' ? answer.end() : ''
			answer = null
			return rest === '' ? null : { event_type: 'model.stream', payload: { content: rest } }
		},
	}
}

function withContent(event: NewEvent, content: string): NewEvent {
	return content === event.payload.content ? event : { ...event, payload: { ...event.payload, content } }
}
