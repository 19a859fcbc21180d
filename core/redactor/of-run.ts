/** Takes secrets out of what one run tells, and has the run's own events say so: once for each secret and sink. */
import type { NewEvent } from '../protocol.ts'
import type { Redactor, TextStream } from '../redactor.ts'
import { noticesOf } from './notices.ts'

export interface RunRedaction {
	/** For text of this run that goes elsewhere, such as to its model. */
	readonly redactor: Redactor
	/** The events as they may be told, and among them those that tell of what was taken out of them or of `step`. */
	told<S>(events: readonly NewEvent[], step: S): { events: readonly NewEvent[]; step: S }
	/** What a live event may show by now, with what tells of it; nothing where all of it is held back. */
	live(event: NewEvent): { event: NewEvent | null; notices: NewEvent[] }
	/** The rest of the answer in the making, which is whole once `next` is told. Null where nothing is left of it. */
	rest(next: readonly NewEvent[]): NewEvent | null
}

/** `tell` takes what happens while none of the methods is under way. */
export function redactionOf(plain: Redactor, tell: (notice: NewEvent) => void): RunRedaction {
	let notices: NewEvent[] | null = null
	const notice = noticesOf((event) => (notices ? notices.push(event) : tell(event)), Infinity)
	const redactor = plain.reportingTo(notice)
	let answer: TextStream | null = null

	const noticing = <T>(work: () => T): { result: T; notices: NewEvent[] } => {
		const heard: NewEvent[] = (notices = [])
		try {
			return { result: work(), notices: heard }
		} finally {
			notices = null
		}
	}
	const clean = (event: NewEvent): NewEvent => {
		const payload = redactor.data(event.payload, 'event')
		return payload === event.payload ? event : { ...event, payload }
	}

	return {
		redactor,
		told(events, step) {
			if (!redactor.active) return { events, step }
			const kept = noticing(() => redactor.data(step, 'record'))
			let untold = kept.notices
			const told = events.flatMap((event) => {
				const found = noticing(() => clean(event))
				const about = [...untold, ...found.notices]
				untold = []
				// What ends or pauses a run is the last that is told of it.
				return event.event_type.startsWith('run.') ? [...about, found.result] : [found.result, ...about]
			})
			return { events: told, step: kept.result }
		},
		live(event) {
			const { content } = event.payload
			if (!redactor.active && !answer) return { event, notices: [] }
			if (typeof content !== 'string') {
				const found = noticing(() => clean(event))
				return { event: found.result, notices: found.notices }
			}
			const stream = (answer ??= redactor.stream('stream'))
			const shown = noticing(() => stream.push(content))
			return { event: shown.result === '' ? null : withContent(event, shown.result), notices: shown.notices }
		},
		rest(next) {
			const type = answer && next.find((event) => event.event_type.startsWith('model.'))?.event_type
			if (!answer || type === undefined) return null
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
