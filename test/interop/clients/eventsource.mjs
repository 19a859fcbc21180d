import { EventSource } from 'eventsource'
import { equal, isCompleteRun } from '../expected.mjs'

const open = ({ token }, url) =>
	new EventSource(url, {
		fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } }),
	})

export const name = 'eventsource'
export const features = {
	async follow(at) {
		isCompleteRun(await typesOf(at, open(at, `${at.url}/v1/events/stream?agent_id=${at.agent}`)))
	},
	/** The connection is cut in the middle of the run. */
	async resume(at) {
		const proxy = await at.cutting()
		const source = open(at, `${proxy.url}/v1/events/stream?agent_id=${at.agent}`)
		isCompleteRun(await typesOf(at, source, () => proxy.cutAfter('event_type":"model.request')))
		equal(proxy.cuts(), 1)
	},
}

async function typesOf(at, source, opened = () => {}) {
	const events = []
	const ended = new Promise((resolve) => {
		source.onmessage = ({ data }) => {
			events.push(JSON.parse(data))
			if (events.at(-1).event_type === 'run.completed') resolve()
		}
	})
	await new Promise((resolve) => (source.onopen = resolve))
	opened()
	const run_id = await at.start('say hello')
	await ended
	source.close()
	return events.filter((event) => event.run_id === run_id).map(({ event_type }) => event_type)
}
