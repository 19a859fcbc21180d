/** The declarations that plugins share: scopes, error codes and event types. */
import { CODE, Fault, isGeneralCode } from '../errors.ts'
import { checkEventType } from '../events/families.ts'
import type { ErrorCode, EventType, Plugin } from '../plugin.ts'

export interface Declared {
	scopes: ReadonlyMap<string, string>
	errors: ReadonlyMap<string, ErrorCode>
	events: ReadonlyMap<string, EventType>
}

const SCOPE = /^[a-z][a-z0-9-]*:[a-z][a-z0-9-]*$/

/** Throws `plugin_invalid`, saying what to change, where a plugin declares what it may not. */
export function checkDeclared({ name, scopes = {}, errors = {}, events = {} }: Plugin, builtIn: boolean): void {
	const refuse = (problem: string): never => {
		throw new Fault('plugin_invalid', `plugin "${name}": ${problem}`)
	}
	for (const [scope, grants] of entriesOf(scopes) ?? refuse('scopes must be an object: scope → what it grants')) {
		if (typeof grants !== 'string' || grants === '') refuse(`the scope "${scope}" needs a description: what it grants`)
		if (builtIn) continue
		if (!SCOPE.test(scope) || !scope.startsWith(`${name}:`))
			refuse(`the scope "${scope}" must begin with the plugin's name, such as ${name}:read`)
	}
	const prefix = `${name.replaceAll('-', '_')}_`
	for (const [code, kind] of entriesOf(errors) ?? refuse('errors must be an object: code → {status, description}')) {
		const { status, description } = (kind ?? {}) as Partial<ErrorCode>
		if (!Number.isInteger(status) || Number(status) < 400 || Number(status) > 599)
			refuse(`the error code "${code}" needs a status from 400 to 599`)
		if (typeof description !== 'string' || description === '')
			refuse(`the error code "${code}" needs a description: what is wrong where it is answered`)
		if (isGeneralCode(code)) refuse(`the error code "${code}" is one of the gateway's own`)
		if (!builtIn && (!CODE.test(code) || !code.startsWith(prefix)))
			refuse(`the error code "${code}" must begin with the plugin's name, such as ${prefix}failed`)
	}
	for (const [type, kind] of entriesOf(events) ?? refuse('events must be an object: type → {description, payload}')) {
		const { description, payload } = (kind ?? {}) as Partial<EventType>
		const fields = entriesOf(payload)
		if (typeof description !== 'string' || description === '' || !fields?.every(([, what]) => typeof what === 'string'))
			refuse(`the event type "${type}" needs a description, and a payload: field → description`)
		if (!builtIn) checkEventType(type, name)
	}
}

/** All that these plugins declare. Throws `plugin_failed` if two declare the same. */
export function declaredBy(plugins: readonly Plugin[]): Declared {
	const scopes = [...merged(plugins, 'scope', ({ scopes: own }) => own)]
	return {
		// By name, and `*` last.
		scopes: new Map(scopes.toSorted(([a], [b]) => Number(a === '*') - Number(b === '*') || (a < b ? -1 : 1))),
		errors: merged(plugins, 'error code', ({ errors }) => errors),
		events: merged(plugins, 'event type', ({ events }) => events),
	}
}

function merged<T>(
	plugins: readonly Plugin[],
	what: string,
	of: (plugin: Plugin) => Readonly<Record<string, T>> | undefined,
): Map<string, T> {
	const all = new Map<string, T>()
	const owners = new Map<string, string>()
	for (const plugin of plugins) {
		for (const [key, value] of Object.entries(of(plugin) ?? {})) {
			const owner = owners.get(key)
			if (owner !== undefined)
				throw new Fault('plugin_failed', `plugins "${owner}" and "${plugin.name}" both declare the ${what} ${key}`)
			owners.set(key, plugin.name)
			all.set(key, value)
		}
	}
	return all
}

function entriesOf(value: unknown): [string, unknown][] | undefined {
	return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : undefined
}
