/**
 * The instances that serve at a time, with everything that they contribute: routes on fresh hapi servers, tools,
 * handlers. Immutable once built; the gateway swaps one for the next.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Server } from '@hapi/hapi'
import { Late, within } from './deadline.ts'
import { Fault, messageOf } from './errors.ts'
import { makeServer } from './http.ts'
import { checkTool } from './instance.ts'
import type { Instance } from './instance.ts'
import type { Logger } from './log.ts'
import type { Address, AgentRef, ToolDefinition } from './plugin.ts'
import type { Redactor } from './redactor.ts'
import { isOfType } from './store/events.ts'
import type { EventEnvelope } from './store/ports.ts'

export interface GenerationOptions {
	number: number
	/** In dependency order. */
	instances: readonly Instance[]
	log: Logger
	redactor: Redactor
	checkResponses: boolean
}

/** For everything that a plugin does while a generation is built. */
const DEADLINE_MS = 10_000
/** Every run asks for its tools before it begins. */
const TOOLS_DEADLINE_MS = 5_000

export class Generation {
	readonly number: number
	readonly instances: ReadonlyMap<string, Instance>
	/** Null where no plugin has routes there. */
	readonly servers: Record<Address, Server | null>
	readonly #log: Logger
	readonly #primitives: ToolDefinition[]
	/** Providers of tools that did not answer: every run would wait for them. */
	readonly #mute = new Set<unknown>()
	#inFlight = 0
	#drained: PromiseWithResolvers<void> | undefined

	private constructor(options: GenerationOptions, servers: Record<Address, Server | null>) {
		this.number = options.number
		this.instances = new Map(options.instances.map((instance) => [instance.name, instance]))
		this.servers = servers
		this.#log = options.log
		this.#primitives = options.instances.flatMap((instance) => instance.contributions.primitives)
	}

	/** Throws `plugin_failed`, naming the plugin, where its routes or tools do not fit in. */
	static async build(options: GenerationOptions): Promise<Generation> {
		refuseDoubleTools(options.instances)
		const { instances } = options
		const hasLegacy = instances.some(
			(one) => one.definition.plugin.legacy || one.contributions.upgrades.some((up) => up.address === 'legacy'),
		)
		const servers = {
			main: makeServer('http://main.invalid', options),
			legacy: hasLegacy ? makeServer('http://legacy.invalid', options) : null,
		}
		try {
			for (const instance of instances) guardServers(instance, servers)
			for (const instance of instances)
				await within(DEADLINE_MS, `plugin "${instance.name}", asked for its routes,`, addRoutes(instance, servers))
			// With autoListen off, this listens nowhere. Only initialized, hapi would end the connection after every answer.
			await within(
				DEADLINE_MS,
				'what plugins do before a server starts',
				Promise.all([servers.main.start(), servers.legacy?.start()]),
			)
		} catch (error) {
			await stopServers(servers)
			throw error
		}
		return new Generation(options, servers)
	}

	/** Hands a request to this generation's routes, and counts it until its answer has gone. */
	request(address: Address, request: IncomingMessage, response: ServerResponse): void {
		const server = this.servers[address]
		if (!server) {
			response.writeHead(503).end()
			return
		}
		this.#inFlight++
		response.once('close', () => {
			if (--this.#inFlight === 0) this.#drained?.resolve()
		})
		server.listener.emit('request', request, response)
	}

	/** False where no plugin takes upgrades at this path. */
	upgrade(address: Address, request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
		const path = request.url ?? ''
		for (const instance of this.instances.values()) {
			for (const offer of instance.contributions.upgrades) {
				if (offer.address !== address || !path.startsWith(offer.prefix)) continue
				offer.handle(request, socket, head)
				return true
			}
		}
		return false
	}

	/** In dependency order of the plugins that add them. */
	extensions(point: string): { plugin: string; value: unknown }[] {
		return [...this.instances.values()].flatMap(({ name, contributions }) =>
			contributions.extensions.filter((one) => one.point === point).map(({ value }) => ({ plugin: name, value })),
		)
	}

	async tools(agent: AgentRef): Promise<ToolDefinition[]> {
		const tools = [...this.#primitives]
		for (const { name, contributions } of this.instances.values()) {
			for (const provide of contributions.providers) {
				if (this.#mute.has(provide)) continue
				try {
					for (const tool of await within(TOOLS_DEADLINE_MS, 'it', provide(agent))) {
						checkTool(tool)
						tools.push(tool)
					}
				} catch (error) {
					if (error instanceof Late) this.#mute.add(provide)
					const advice = error instanceof Late ? '; it is not asked again until it is changed' : ''
					this.#log.warn(
						{ err: error, plugin: name, agent: agent.name },
						`a plugin could not say what tools it has for an agent${advice}`,
					)
				}
			}
		}
		return tools
	}

	/** Each handler gets its own copy: what it changes there is nobody else's. */
	handle(event: EventEnvelope): void {
		for (const instance of this.instances.values()) {
			for (const { type, handle } of instance.contributions.handlers) {
				if (!isOfType(event.event_type, type)) continue
				const failed = (error: unknown): void =>
					this.#log.error(
						{ err: error, plugin: instance.name, event_type: event.event_type },
						'a handler of events failed',
					)
				try {
					Promise.resolve(handle(structuredClone(event))).catch(failed)
				} catch (error) {
					failed(error)
				}
			}
		}
	}

	get inFlight(): number {
		return this.#inFlight
	}

	/** Waits until the last request that it began has ended, then stops its servers. */
	async drain(): Promise<void> {
		if (this.#inFlight > 0) {
			this.#drained = Promise.withResolvers()
			await this.#drained.promise
		}
		await stopServers(this.servers)
	}
}

function guardServers({ name, definition, context }: Instance, { main, legacy }: Generation['servers']): void {
	try {
		for (const server of [main, legacy]) if (server) definition.plugin.guard?.(server, context)
	} catch (error) {
		throw new Fault('plugin_failed', `plugin "${name}" could not guard a server: ${messageOf(error)}`, {
			cause: error,
		})
	}
}

async function addRoutes(instance: Instance, servers: Generation['servers']): Promise<void> {
	const { plugin } = instance.definition
	for (const address of ['main', 'legacy'] as const) {
		const body = address === 'main' ? plugin.http : plugin.legacy
		const server = servers[address]
		if (!body || !server) continue
		try {
			await server.register({
				name: plugin.name,
				register: (realm) => body.call(plugin, realm as Server, instance.context),
			})
		} catch (error) {
			throw new Fault('plugin_failed', `plugin "${plugin.name}" could not add its routes: ${messageOf(error)}`, {
				cause: error,
			})
		}
	}
}

function refuseDoubleTools(instances: readonly Instance[]): void {
	const owners = new Map<string, string>()
	for (const instance of instances) {
		for (const { name } of instance.contributions.primitives) {
			const owner = owners.get(name)
			if (owner !== undefined)
				throw new Fault('plugin_failed', `plugins "${owner}" and "${instance.name}" both offer the primitive ${name}`)
			owners.set(name, instance.name)
		}
	}
}

async function stopServers(servers: Generation['servers']): Promise<void> {
	await servers.main?.stop({ timeout: 0 })
	await servers.legacy?.stop({ timeout: 0 })
}
