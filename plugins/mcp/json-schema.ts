/** Checks arguments that a person edited by the schema of a server's tool. A model's arguments are checked by the server. */
import { Fault } from '../../core/errors.ts'

/** Characters of what is wrong. */
const SHOWN = 1_000

/** Throws `invalid_arguments`. A schema that cannot be used refuses nothing: the server still checks. */
export async function checkBySchema(
	tool: string,
	schema: Record<string, unknown>,
	args: Record<string, unknown>,
): Promise<void> {
	const { AjvJsonSchemaValidator } = await import('@modelcontextprotocol/sdk/validation/ajv')
	let problem: string | undefined
	try {
		const result = new AjvJsonSchemaValidator().getValidator(schema)(args)
		problem = result.valid ? undefined : result.errorMessage
	} catch {}
	if (problem !== undefined)
		throw new Fault('invalid_arguments', `the arguments of ${tool} are wrong: ${problem.slice(0, SHOWN)}`)
}
