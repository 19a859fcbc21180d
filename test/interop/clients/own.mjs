import { equal, isCompleteRun } from '../expected.mjs'

export const name = 'svc-gateway-client'
export const features = {
	async follow(at) {
		isCompleteRun(await typesOf(at, at.url))
	},
	/** The connection is cut before the first event, and again in the middle of the run. */
	async resume(at) {
		const proxy = await at.cutting()
		proxy.cutAfter('text/event-stream')
		let cut = false
		const onDisconnect = () => {
			if (!cut) proxy.cutAfter('event_type":"model.request')
			cut = true
		}
		isCompleteRun(await typesOf(at, proxy.url, { onDisconnect }))
		equal(proxy.cuts(), 2)
	},
}

async function typesOf({ createGateway, token, agent }, url, options) {
	const types = []
	for await (const { event_type } of createGateway({ url, token }).run(agent, { prompt: 'say hello' }, options))
		types.push(event_type)
	return types
}
