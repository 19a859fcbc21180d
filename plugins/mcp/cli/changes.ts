import type { Style } from '../../../core/cli/contract.ts'
import type { McpTool } from '../contract.ts'

/** The differences between the held and the accepted definitions of tools. */
export async function changesText(tools: readonly McpTool[], style: Style): Promise<string> {
	const { diffLines } = await import('diff')
	return tools.map(changes).join('\n\n')

	function changes({ tool, digest, accepted, ...now }: McpTool): string {
		const title = `${style.bold(style.plain(tool))}  ${style.dim(digest)}`
		const parts = diffLines(accepted === undefined ? '' : written(accepted), written(now))
		const lines = parts.flatMap(({ added, removed, value }) =>
			value
				.replace(/\n$/, '')
				.split('\n')
				.map((line) => {
					const text = style.plain(line)
					return added ? style.good(`  + ${text}`) : removed ? style.bad(`  - ${text}`) : `    ${text}`
				}),
		)
		return [title, ...lines].join('\n')
	}
}

function written({ description, input_schema, annotations }: NonNullable<McpTool['accepted']>): string {
	return `${description}\n\nArguments: ${JSON.stringify(input_schema, null, 2)}\nAnnotations: ${JSON.stringify(annotations, null, 2)}\n`
}
