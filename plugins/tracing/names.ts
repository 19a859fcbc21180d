/**
 * All names from OpenTelemetry's conventions for generative AI, which are still in development and may change. Names outside the
 * conventions begin with `svc.`.
 */
export const SEMANTIC_CONVENTIONS = '1.45.0'

export const names = {
	operation: 'gen_ai.operation.name',
	provider: 'gen_ai.provider.name',
	request_model: 'gen_ai.request.model',
	response_model: 'gen_ai.response.model',
	finish_reasons: 'gen_ai.response.finish_reasons',
	input_tokens: 'gen_ai.usage.input_tokens',
	output_tokens: 'gen_ai.usage.output_tokens',
	agent: 'gen_ai.agent.name',
	conversation: 'gen_ai.conversation.id',
	tool: 'gen_ai.tool.name',
	tool_type: 'gen_ai.tool.type',
	call: 'gen_ai.tool.call.id',
	error: 'error.type',

	// Only with tracing.content.
	system: 'gen_ai.system_instructions',
	input: 'gen_ai.input.messages',
	output: 'gen_ai.output.messages',
	arguments: 'gen_ai.tool.call.arguments',
	result: 'gen_ai.tool.call.result',

	run: 'svc.run.id',
	trigger: 'svc.run.trigger',
	outcome: 'svc.run.outcome',
	step: 'svc.run.step',
	request: 'svc.request.id',
	mcp_server: 'svc.mcp.server',
} as const

export const operations = { run: 'invoke_agent', model: 'chat', tool: 'execute_tool' } as const
