/** The webhooks service alone, with a real store, vault and redactor, without routes. */
import { openLog } from '../../../core/log/log.ts'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import type { NewEvent } from '../../../core/protocol.ts'
import type { Redactor } from '../../../core/redactor/redactor.ts'
import type { Store } from '../../../core/store/ports.ts'
import type { Repeatable, WebhookSettings } from '../../../plugins/webhooks/contract.ts'
import { tidy } from '../../../plugins/webhooks/maintenance.ts'
import { secretsOf } from '../../../plugins/webhooks/secrets.ts'
import { webhooksOf } from '../../../plugins/webhooks/webhooks.ts'
import { open as openVault } from '../vault/open.ts'
import type { Place } from '../vault/open.ts'

const settings: WebhookSettings = {
	public_url: 'https://gateway.example.com/',
	max_per_agent: 3,
	max_body_kib: 64,
	per_minute: 100,
	max_concurrent: 8,
	max_concurrent_per_webhook: 4,
	retention_days: 30,
}

export interface Opened {
	webhooks: ReturnType<typeof webhooksOf>
	store: Store
	redactor: Redactor
	events: NewEvent[]
	agent(name: string): Promise<AgentRef>
	remove(agent: string): Promise<void>
	/** A tool call of a run with this key. */
	call(key: string): Repeatable
	tidy(at: number, kept?: number): Promise<void>
}

/** As after a start of the gateway. */
export async function open(place: Place): Promise<Opened> {
	const { vault, agents, redactor } = await openVault(place)
	const { store } = place.engine
	const events: NewEvent[] = []
	const services = { vault, agents, runs: { destination: async () => ({ deliver: 'none' }) } }
	const ctx = {
		store,
		redactor,
		config: settings,
		signal: new AbortController().signal,
		log: openLog({ level: 'silent', format: 'json' }),
		gateway: { url: () => null },
		emit: async (event: NewEvent) => void events.push(event),
		use: (name: keyof typeof services) => services[name],
	} as unknown as Context<WebhookSettings>
	const secrets = secretsOf(ctx)
	const webhooks = webhooksOf(ctx, secrets)
	await secrets.redactAll()
	return {
		webhooks,
		store,
		redactor,
		events,
		agent: async (name) => (await agents.find(name)) ?? agents.create({ name }),
		remove: (name) => agents.remove(name),
		call: (key) => ({ key, emit: (event) => void events.push(event) }),
		tidy: (at, kept) => tidy(ctx, secrets, at, kept),
	}
}
