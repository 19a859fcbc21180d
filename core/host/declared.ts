/** What plugins declare: scopes, error codes, event types and tools. */
import Joi from 'joi'
import { CODE, Fault, isGeneralCode, messageOf, pluginInvalid } from '../errors.ts'
import { checkEventType } from '../events/families.ts'
import type { ErrorCode, EventType, GenerationView, Plugin, ToolDefinition } from '../plugin.ts'
import { isObject } from '../util/is-object.ts'

const SCOPE = /^[a-z][a-z0-9-]*:[a-z][a-z0-9-]*$/

/** Throws `plugin_invalid`, which states what to change, if a plugin's declarations are invalid. */
export function checkDeclared({ name, scopes = {}, errors = {}, events = {} }: Plugin, builtIn: boolean): void {
	const refuse = (problem: string): never => {
		throw pluginInvalid(`plugin "${name}": ${problem}`)
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
			refuse(`the error code "${code}" needs a description: what is wrong when it is returned`)
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

/** Merges the declarations of these plugins. Throws `plugin_failed` if two declare the same name. */
export function declaredBy(plugins: readonly Plugin[]): Pick<GenerationView, 'scopes' | 'errors' | 'events'> {
	const scopes = [...mergeUnique(plugins, 'declare the scope', (plugin) => Object.entries(plugin.scopes ?? {}))]
	return {
		// By name, and `*` last.
		scopes: new Map(scopes.toSorted(([a], [b]) => Number(a === '*') - Number(b === '*') || (a < b ? -1 : 1))),
		errors: mergeUnique(plugins, 'declare the error code', ({ errors = {} }) => Object.entries(errors)),
		events: mergeUnique(plugins, 'declare the event type', ({ events = {} }) => Object.entries(events)),
	}
}

/** Merges the entries of all owners. Throws `plugin_failed` if two have the same key; `both`: the verb phrase of the message. */
export function mergeUnique<Owner extends { name: string }, T>(
	owners: readonly Owner[],
	both: string,
	of: (owner: Owner) => [key: string, value: T][],
): Map<string, T> {
	const all = new Map<string, T>()
	const ownerOf = new Map<string, string>()
	for (const owner of owners) {
		for (const [key, value] of of(owner)) {
			const other = ownerOf.get(key)
			if (other !== undefined)
				throw new Fault('plugin_failed', `plugins "${other}" and "${owner.name}" both ${both} ${key}`)
			ownerOf.set(key, owner.name)
			all.set(key, value)
		}
	}
	return all
}

/** Tools that passed the check: a provider may return the same ones for each run. */
const checkedTools = new WeakSet<ToolDefinition>()

/** Throws `plugin_invalid`, which states what is missing: an incomplete tool cannot be described to a model. */
export function checkTool(tool: ToolDefinition): void {
	if (checkedTools.has(tool)) return
	const { name, description, parameters, run } = tool
	if (typeof name !== 'string' || name === '' || name.length > 128)
		throw pluginInvalid('a tool needs a name of 1 to 128 characters')
	if (typeof description !== 'string' || description === '')
		throw pluginInvalid(`the tool ${name} needs a description, from which a model learns when to use it`)
	if (typeof run !== 'function') throw pluginInvalid(`the tool ${name} needs a function run(args, call)`)
	try {
		// They are sent to another thread, and as JSON to a model. If that failed, the runs of all agents would fail.
		if (!Joi.isSchema(parameters) && parameters !== undefined) {
			if (!isObject(parameters)) throw new TypeError(`${typeof parameters} is not an object`)
			JSON.stringify(structuredClone(parameters))
		}
	} catch (error) {
		throw pluginInvalid(`the parameters of the tool ${name} are neither a joi schema nor a JSON Schema`, error)
	}
	checkedTools.add(tool)
}

/** joi schemas that passed the check. */
const describable = new WeakSet<object>()

/**
 * Throws `plugin_invalid` if the schema of a third-party tool cannot be converted for models. Schemas of built-in tools are not
 * checked: they are convertible, and built on first use.
 */
export function checkDescribable({ name, parameters }: ToolDefinition): void {
	if (!Joi.isSchema(parameters) || describable.has(parameters)) return
	try {
		JSON.stringify(parameters['~standard'].jsonSchema.input({ target: 'draft-2020-12' }))
	} catch (error) {
		const problem = `the parameters of the tool ${name} cannot be described to a model: ${messageOf(error)}`
		throw pluginInvalid(problem, error)
	}
	describable.add(parameters)
}

/** Throws `plugin_invalid` as `checkTool` does, and for a name that a primitive must not have. */
export function checkPrimitive(definition: ToolDefinition): void {
	checkTool(definition)
	if (/^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$/.test(definition.name)) return
	throw pluginInvalid(
		`the primitive "${definition.name}" needs a name such as clock.now: lower-case words with dots between`,
	)
}

function entriesOf(value: unknown): [string, unknown][] | undefined {
	return isObject(value) ? Object.entries(value) : undefined
}
