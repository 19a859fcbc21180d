/** Validates the tools that a server lists, since a list may contain anything, and adds a digest to each definition. */
import { hash } from 'node:crypto'
import { canonicalJson } from '../../core/util/canonical-json.ts'
import { isObject } from '../../core/util/is-object.ts'
import type { McpTool } from './contract.ts'

export type Definition = Pick<McpTool, 'name' | 'description' | 'input_schema' | 'annotations' | 'digest'>

const NAME = /^[\x21-\x7e]{1,128}$/
const TOOLS = 256
const TOOL_LIMIT_CHARACTERS = 64 * 1024
const ALL_LIMIT_CHARACTERS = 1024 * 1024
const DEPTH = 32

/** The tools that can be offered, in the server's order, and one sentence for each that cannot. */
export function readDefinitions(listed: readonly unknown[]): { definitions: Definition[]; refused: string[] } {
	const definitions = new Map<string, Definition>()
	const refused: string[] = []
	let size = 0
	for (const raw of listed) {
		const definition = read(raw)
		if (typeof definition === 'string') {
			refused.push(definition)
			continue
		}
		const length = JSON.stringify(definition).length
		if (definitions.has(definition.name)) refused.push(`${definition.name} is listed twice`)
		else if (length > TOOL_LIMIT_CHARACTERS) refused.push(`${definition.name} has a definition that is too long`)
		else if (definitions.size === TOOLS || size + length > ALL_LIMIT_CHARACTERS)
			refused.push(
				`${definition.name} exceeds the limit of ${TOOLS} tools or ${ALL_LIMIT_CHARACTERS} characters of definitions`,
			)
		else {
			definitions.set(definition.name, definition)
			size += length
		}
	}
	return { definitions: [...definitions.values()], refused }
}

/** The definition, or the reason why it cannot be offered. */
function read(raw: unknown): Definition | string {
	if (!isObject(raw) || typeof raw.name !== 'string' || !NAME.test(raw.name)) {
		return 'a tool has no name of 1 to 128 printable characters'
	}
	const { name, title, description, inputSchema, outputSchema, execution } = raw
	if (!isObject(inputSchema) || (inputSchema.type ?? 'object') !== 'object')
		return `${name} does not accept an object as its arguments`
	if (!isObject(inputSchema.properties ?? {})) return `${name} has an invalid JSON Schema for its arguments`
	if (!isShallow(raw, DEPTH)) return `${name} has a definition that is nested too deeply`
	if (isObject(execution) && execution.taskSupport === 'required')
		return `${name} requires execution as a task, which is not supported`
	const annotations = isObject(raw.annotations) ? raw.annotations : {}
	const texts = [description, annotations.title, title].filter((one) => typeof one === 'string')
	return {
		name,
		description: texts.find((text) => text.trim() !== '') ?? `The tool ${name}.`,
		// Some model APIs reject an object without properties.
		input_schema: { ...inputSchema, type: 'object', properties: inputSchema.properties ?? {} },
		annotations,
		digest: hash('sha256', canonicalJson({ name, title, description, inputSchema, outputSchema, annotations })),
	}
}

function isShallow(value: unknown, depth: number): boolean {
	if (typeof value !== 'object' || value === null) return true
	return depth > 0 && Object.values(value).every((one) => isShallow(one, depth - 1))
}
