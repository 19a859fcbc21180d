/**
 * The set of instances that is active at one time, with everything that they contribute: routes on new hapi servers, tools,
 * handlers. Immutable once built; a reload replaces it with the next one.
 */
import { inChainOf } from '../events/chains.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Server } from '@hapi/hapi'
import { BoundedMap } from '../util/bounded-map.ts'
import { Late, within } from '../util/deadline.ts'
import { Fault, messageOf } from '../errors.ts'
import { answerDirectly } from '../http/direct-answer.ts'
import { makeServer } from '../http/server.ts'
import type { ServerOptions } from '../http/server.ts'
import { composition } from './config.ts'
import { checkTool, declaredBy, mergeUnique } from './declared.ts'
import { namedServer } from './request-extensions.ts'
import type { AnyExtension, Instance } from './instance.ts'
import type { Logger } from '../log/log.ts'
import { continueOnBehalfOf } from '../util/context.ts'
import type { Address, AgentRef, GenerationView, ToolDefinition } from '../plugin.ts'
import { isOfType } from '../store/events.ts'
import type { EventEnvelope } from '../store/ports.ts'

export interface GenerationOptions extends Pick<ServerOptions, 'log' | 'redactor' | 'checkResponses'> {
	number: number
	/** In dependency order. */
	instances: readonly Instance[]
}

/** For each call of a plugin while a generation is built. */
const DEADLINE_MS = 10_000
/** For a tool provider: every run waits for its tools before it begins. */
const TOOLS_DEADLINE_MS = 5_000

/** Event types whose handlers are cached; plugins may emit any number of types. */
const EVENT_TYPES = 256

interface EventHandler {
	instance: Instance
	handle: Instance['handlers'][number][1]
}

export class Generation {
	readonly number: number
	readonly instances: ReadonlyMap<string, Instance>
	readonly servers: GenerationView['servers']
	readonly #inOrder: readonly Instance[]
	#handlers = { count: 0, byType: new BoundedMap<string, readonly EventHandler[]>(EVENT_TYPES) }
	#extended = { count: 0, byPoint: new Map<string, readonly AnyExtension[]>() }
	readonly #log: Logger
	readonly #primitives: Iterable<ToolDefinition>
	/** Tool providers that timed out. They are not called again, since every run would wait for them. */
	readonly #timedOut = new Set<unknown>()
	#inFlight = 0
	#drained: PromiseWithResolvers<void> | undefined
	readonly #answered = (): void => {
		if (--this.#inFlight === 0) this.#drained?.resolve()
	}

	private constructor(
		{ number, instances, log }: GenerationOptions,
		servers: GenerationView['servers'],
		primitives: ReadonlyMap<string, ToolDefinition>,
	) {
		this.number = number
		this.#inOrder = instances
		this.instances = new Map(instances.map((instance) => [instance.name, instance]))
		this.servers = servers
		this.#log = log
		this.#primitives = [...primitives.values()]
	}

	/** Throws `plugin_failed`, naming the plugin, if its routes or tools conflict with others. */
	static async build(options: GenerationOptions): Promise<Generation> {
		const { instances } = options
		const primitives = mergeUnique(instances, 'offer the primitive', (instance) =>
			instance.primitives.map((tool) => [tool.name, tool]),
		)
		const declared = declaredBy(instances.map(({ definition }) => definition.plugin))
		const builtIn = new Set(instances.flatMap(({ name, owner }) => (owner === undefined ? name : [])))
		const hasLegacy = instances.some(
			({ definition, upgrades }) => definition.plugin.legacy || upgrades.some(([address]) => address === 'legacy'),
		)
		const offAt = (path: string): string | undefined =>
			[...composition.plugins.values()].find(({ name, answersAt }) => !builtIn.has(name) && answersAt?.test(path))?.name
		const serverOptions = { ...options, onlyBuiltIn: !instances.some(seesRequests) }
		const servers = {
			main: makeServer('http://main.invalid', { ...serverOptions, offAt }),
			legacy: hasLegacy ? makeServer('http://legacy.invalid', serverOptions) : null,
		}
		try {
			for (const server of all(servers)) followOwners(server, instances)
			const view = { servers, ...declared, isBuiltIn: (plugin: string): boolean => builtIn.has(plugin) }
			for (const instance of instances) await guardServers(instance, view)
			for (const instance of instances)
				await within(DEADLINE_MS, `plugin "${instance.name}", asked for its routes,`, addRoutes(instance, view))
			if (serverOptions.onlyBuiltIn) for (const server of all(servers)) answerDirectly(server)
			// With autoListen off, `start` does not listen. After `initialize` alone, hapi would close the connection after each response.
			const started = Promise.all(all(servers).map((server) => server.start()))
			await within(DEADLINE_MS, 'what plugins do before a server starts', started)
		} catch (error) {
			await stopServers(servers)
			throw error
		}
		return new Generation(options, servers, primitives)
	}

	/** Passes a request to this generation's routes, and counts it as in flight until its response has been sent. */
	request(address: Address, request: IncomingMessage, response: ServerResponse): void {
		const server = this.servers[address]
		if (!server) {
			response.writeHead(503).end()
			return
		}
		this.#inFlight++
		response.on('close', this.#answered)
		server.listener.emit('request', request, response)
	}

	/** False if no plugin accepts upgrades at this path. */
	upgrade(address: Address, request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
		const path = request.url ?? ''
		for (const instance of this.instances.values()) {
			for (const [at, prefix, handle] of instance.upgrades) {
				if (at !== address || !path.startsWith(prefix)) continue
				instance.run(() => handle(request, socket, head))
				return true
			}
		}
		return false
	}

	/** The routes of a plugin on both addresses, such as `GET /v1/agents`, by path. */
	routesOf(plugin: string): string[] {
		const routes = all(this.servers).flatMap((server) => server.table().filter(({ realm }) => realm.plugin === plugin))
		return routes
			.toSorted((a, b) => (a.path < b.path ? -1 : Number(a.path > b.path)))
			.map(({ method, path }) => `${method.toUpperCase()} ${path}`)
	}

	/** In dependency order of the plugins that add them. */
	extensions(point: string): readonly AnyExtension[] {
		// Cached, since every request needs them. A plugin may add extensions later, which changes the count.
		const count = this.#inOrder.reduce((sum, { extensions }) => sum + extensions.length, 0)
		if (count !== this.#extended.count) this.#extended = { count, byPoint: new Map() }
		const { byPoint } = this.#extended
		const known = byPoint.get(point)
		if (known) return known
		const found = this.#inOrder.flatMap(({ extensions }) => extensions.filter((one) => one.point === point))
		byPoint.set(point, found)
		return found
	}

	async tools(agent: AgentRef): Promise<ToolDefinition[]> {
		const tools = [...this.#primitives]
		for (const instance of this.instances.values()) {
			for (const provide of instance.providers) {
				if (this.#timedOut.has(provide)) continue
				try {
					const given = instance.run(() => provide(agent))
					for (const tool of Array.isArray(given) ? given : await within(TOOLS_DEADLINE_MS, 'it', given)) {
						checkTool(tool)
						tools.push(instance.tool(tool))
					}
				} catch (error) {
					if (error instanceof Late) this.#timedOut.add(provide)
					const advice = error instanceof Late ? '; it is not asked again until it is changed' : ''
					this.#log.warn(
						{ err: error, plugin: instance.name, agent: agent.name },
						`a plugin could not provide its tools for an agent${advice}`,
					)
				}
			}
		}
		return tools
	}

	/** Calls the handlers of an event. Each third-party handler gets its own copy, so its changes do not affect others. */
	handle(event: EventEnvelope): void {
		for (const { instance, handle } of this.#handlersOf(event.event_type)) notify(instance, handle, event)
	}

	/** Cached by type: otherwise each event would be compared with a hundred handlers of other types. */
	#handlersOf(type: string): readonly EventHandler[] {
		const count = this.#inOrder.reduce((sum, { handlers }) => sum + handlers.length, 0)
		if (count !== this.#handlers.count) this.#handlers = { count, byType: new BoundedMap(EVENT_TYPES) }
		const { byType } = this.#handlers
		const known = byType.get(type)
		if (known) return known
		const found = this.#inOrder.flatMap((instance) =>
			instance.handlers.flatMap(([wanted, handle]) => (isOfType(type, wanted) ? { instance, handle } : [])),
		)
		byType.set(type, found)
		return found
	}

	/** Waits for the requests in flight, then stops the servers. */
	async drain(): Promise<void> {
		if (this.#inFlight > 0) {
			this.#drained = Promise.withResolvers()
			await this.#drained.promise
		}
		await stopServers(this.servers)
	}
}

function notify(instance: Instance, handle: Instance['handlers'][number][1], event: EventEnvelope): void {
	const failed = `a handler of the event ${event.event_type} failed`
	if (instance.owner === undefined) return void instance.notify(() => handle(event), failed)
	const copy = structuredClone(event)
	void inChainOf(event, () => instance.notify(() => handle(copy), failed))
}

/** Whether it is a third-party plugin with access to the servers. */
function seesRequests({ owner, definition: { plugin } }: Instance): boolean {
	return owner !== undefined && [plugin.guard, plugin.http, plugin.legacy].some((add) => add !== undefined)
}

/** Makes requests run on behalf of the third-party plugin whose route they match. */
function followOwners(server: Server, instances: readonly Instance[]): void {
	const owners = new Set(instances.flatMap(({ owner }) => owner ?? []))
	if (owners.size === 0) return
	server.ext('onPreAuth', ({ route }, h) => {
		if (owners.has(route.realm.plugin)) continueOnBehalfOf(route.realm.plugin)
		return h.continue
	})
}

async function guardServers(instance: Instance, view: GenerationView): Promise<void> {
	const { definition, context } = instance
	const service = instance.lateService()
	for (const server of all(view.servers))
		await attempt(instance, 'guard a server', () =>
			instance.run(() => definition.plugin.guard?.(namedServer(server, instance), context, service, view)),
		)
}

async function addRoutes(instance: Instance, view: GenerationView): Promise<void> {
	const { plugin } = instance.definition
	const service = instance.lateService()
	for (const address of ['main', 'legacy'] as const) {
		const body = address === 'main' ? plugin.http : plugin.legacy
		if (!body) continue
		const register = (realm: Server): void | Promise<void> =>
			instance.run(() => body.call(plugin, namedServer(realm, instance), instance.context, service, view))
		await attempt(instance, 'add its routes', () => view.servers[address]?.register({ name: plugin.name, register }))
	}
}

/** Converts an error of `work` to `plugin_failed`. */
async function attempt({ name }: Instance, doing: string, work: () => unknown): Promise<void> {
	try {
		await work()
	} catch (error) {
		throw new Fault('plugin_failed', `plugin "${name}" could not ${doing}: ${messageOf(error)}`, { cause: error })
	}
}

function all({ main, legacy }: Generation['servers']): Server[] {
	return legacy ? [main, legacy] : [main]
}

async function stopServers(servers: Generation['servers']): Promise<void> {
	for (const server of all(servers)) await server.stop({ timeout: 0 })
}
