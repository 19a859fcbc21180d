import { equal, isCompleteRun } from '../expected.mjs'

const { fetchEventSource } = await import('@microsoft/fetch-event-source')

export const name = '@microsoft/fetch-event-source'
export const features = {
	async follow(at) {
		isCompleteRun(await runOf(at, at.url))
	},
	/** It repeats the POST with the last id. The idempotency key prevents a second run. */
	async resume(at) {
		const proxy = await at.cutting()
		proxy.cutAfter('event_type":"model.request')
		isCompleteRun(await runOf(at, proxy.url))
		equal(proxy.cuts(), 1)
	},
}

async function runOf({ token, agent }, url) {
	const types = []
	// It needs a browser's globals, which are removed afterwards because other clients refuse to run in a browser.
	Object.assign(globalThis, { window: globalThis, document: new EventTarget() })
	await fetchEventSource(`${url}/v1/agents/${agent}/runs`, {
		method: 'POST',
		headers: {
			authorization: `Bearer ${token}`,
			'content-type': 'application/json',
			accept: 'text/event-stream',
			'idempotency-key': crypto.randomUUID(),
		},
		body: JSON.stringify({ prompt: 'say hello' }),
		openWhenHidden: true,
		onmessage({ data }) {
			if (data) types.push(JSON.parse(data).event_type)
		},
		onerror(error) {
			if (types.at(-1) === 'run.completed') throw error
		},
	}).finally(() => {
		delete globalThis.window
		delete globalThis.document
	})
	return types
}
