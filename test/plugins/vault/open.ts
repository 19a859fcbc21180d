/** The vault alone: with a real home folder, a store and agents, without routes. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openEventBus } from '../../../core/events/event-bus.ts'
import { openLog } from '../../../core/log/log.ts'
import type { Context } from '../../../core/plugin.ts'
import type { NewEvent } from '../../../core/protocol.ts'
import { openRedactor } from '../../../core/redactor/redactor.ts'
import type { Redactor } from '../../../core/redactor/redactor.ts'
import { openMemory } from '../../support/memory-engine.ts'
import type { Engine, Store } from '../../../core/store/ports.ts'
import { agentsOf } from '../../../plugins/agents/agents.ts'
import type { Agents } from '../../../plugins/agents/contract.ts'
import type { SecretReading } from '../../../plugins/vault/contract.ts'
import { openVault } from '../../../plugins/vault/vault.ts'
import type { RunningVault } from '../../../plugins/vault/vault.ts'

export interface Place {
	/** With a folder `keys`. */
	home: string
	engine: Engine
}

export interface Opened {
	vault: RunningVault
	agents: Agents
	redactor: Redactor
	/** The problem that it reported. */
	trouble: string | null
	/** All emitted events, including those of reads. */
	events: NewEvent[]
	/** For reads by this agent. */
	as(agent: string): Promise<SecretReading>
}

export function makePlace(home: string): Place {
	mkdirSync(join(home, 'keys'), { recursive: true })
	return { home, engine: openMemory() }
}

/** Opens the vault, as at a start of the gateway. `store` replaces that of the place, for faults. */
export async function open(
	{ home, engine }: Place,
	{ env = {}, store = engine.store }: { env?: NodeJS.ProcessEnv; store?: Store } = {},
): Promise<Opened> {
	const log = openLog({ level: 'silent', format: 'json' })
	const redactor = openRedactor()
	const events: NewEvent[] = []
	const bus = openEventBus(engine.log, log)
	const emit = async (event: NewEvent): Promise<void> => {
		events.push(event)
		await bus.emit(event)
	}
	const find = (): undefined => undefined
	const agents = agentsOf({ store: engine.store, emit, extensions: () => [], config: { max_agents: 1000 } })
	const opened: Opened = {
		vault: undefined as unknown as RunningVault,
		agents,
		redactor,
		trouble: null,
		events,
		as: async (agent) => ({ agent: await agents.get(agent), via: 'test', emit: (event) => void events.push(event) }),
	}
	const ctx = {
		store,
		env,
		log,
		redactor,
		emit,
		find,
		use: () => agents,
		defer: () => {},
		events: bus,
		gateway: { home },
		trouble: (message: string | null) => void (opened.trouble = message),
	}
	opened.vault = await openVault(ctx as unknown as Context)
	return opened
}
