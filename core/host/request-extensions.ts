/** hapi's request extensions run for every route of a server, so an error in one must name the plugin that added it. */
import { isBoom } from '@hapi/boom'
import type { Lifecycle, Server, ServerExtEventsObject, ServerExtEventsRequestObject } from '@hapi/hapi'
import { isFault, messageOf } from '../errors.ts'
import type { Instance } from './instance.ts'

/** Wraps the server for a plugin: if one of its extensions throws or returns nothing, that is reported as the plugin's failure. */
export function namedServer(server: Server, instance: Instance): Server {
	if (instance.owner === undefined) return server
	const ext = (events: unknown, method?: unknown, options?: unknown): unknown => {
		const listed = typeof events === 'string' ? { type: events, method, options } : events
		if (typeof events === 'string' && method === undefined)
			return (server.ext as (type: unknown) => unknown).call(server, events)
		return server.ext([listed].flat().map((one) => watched(one as ServerExtEventsObject, instance)) as never)
	}
	return Object.create(server, { ext: { value: ext } }) as Server
}

/** Called once, with the server. If one throws, the generation is refused. */
const serverEvents: readonly string[] = ['onPreStart', 'onPostStart', 'onPreStop', 'onPostStop']

function watched(event: ServerExtEventsObject, instance: Instance): ServerExtEventsObject {
	if (serverEvents.includes(event.type)) return event
	const { type, method, options } = event as unknown as ServerExtEventsRequestObject
	const methods = [method].flat().map((one) => watch(one, type, instance))
	return { type, method: methods, ...(options && { options }) } as unknown as ServerExtEventsObject
}

function watch(method: Lifecycle.Method, type: string, instance: Instance): Lifecycle.Method {
	const report = (error: unknown): void => {
		// A plugin may refuse a request.
		if (isFault(error) || (isBoom(error) && error.output.statusCode !== 500)) return
		const message = `its hapi extension ${type} failed for a request: ${messageOf(error)}`
		instance.failed(new Error(message, { cause: error }), message)
	}
	return async function (this: unknown, request, h, ...rest) {
		try {
			const result = await instance.run(() => method.call(this as never, request, h, ...rest))
			if (result instanceof Error) report(result)
			if (result === undefined) report(new Error('it returned nothing; end it with: return h.continue'))
			return result
		} catch (error) {
			report(error)
			throw error
		}
	}
}
