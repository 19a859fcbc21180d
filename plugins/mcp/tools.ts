/** Provides the tools of an agent's servers to the gateway's toolbox. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef, Context, ToolDefinition } from '../../core/plugin.ts'
import { problemsIn } from '../../sandbox/form/check-json.ts'
import type { ServerConnection } from './connection.ts'
import type { ConnectionRegistry } from './connection-registry.ts'
import type { Definition } from './definitions.ts'
import { toolNames } from './names.ts'
import { fillArguments } from './values.ts'

/** The known tools. Asks no server, since every run waits for this list. */
export function toolsOf(connections: Iterable<ServerConnection>, ctx: Pick<Context, 'find'>): ToolDefinition[] {
	const all = [...connections].flatMap((connection) =>
		connection.offered().map((definition) => ({ connection, definition })),
	)
	const names = toolNames(
		all.map(({ connection, definition }) => ({ server: connection.record.name, tool: definition.name })),
	)
	return all.map(({ connection, definition }, at) => toolOf(names[at] ?? '', connection, definition, ctx))
}

/** Waits for tools that a run would otherwise lack: see `ServerConnection.awaitTools`. */
export async function awaitTools(registry: ConnectionRegistry, agent: AgentRef, signal: AbortSignal): Promise<void> {
	const connections = [...(await registry.of(agent)).values()]
	await Promise.all(connections.flatMap((connection) => connection.awaitTools(signal) ?? []))
}

function toolOf(
	name: string,
	connection: ServerConnection,
	{ name: tool, description, input_schema, annotations }: Definition,
	ctx: Pick<Context, 'find'>,
): ToolDefinition {
	const server = connection.record.name
	return {
		name,
		shown_as: `mcp__${server}__${tool}`,
		description,
		parameters: input_schema,
		// Other calls may already have taken effect, and so are not repeated after a restart.
		repeatable: annotations.idempotentHint === true || annotations.readOnlyHint === true,
		destructive: annotations.destructiveHint === true,
		// Ignores the patterns in the schema: the server wrote them, and matching could take forever. It checks them itself.
		check(args) {
			const problems = problemsIn(args, input_schema)
			if (problems.length > 0)
				throw new Fault('invalid_arguments', `the arguments of ${name} are wrong: ${problems.join('; ')}`)
		},
		events: { called: 'mcp.called', result: 'mcp.result', failed: 'mcp.failed', payload: { server, tool } },
		async run(args, call) {
			const filled = await fillArguments(args, connection.record, call, ctx)
			return connection.call(tool, filled, call)
		},
	}
}
