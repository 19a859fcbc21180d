import t from 'tap'
import { ToolCalls } from '../../../plugins/legacy-chat/tool-calls.ts'

void t.test('calls of tools show by the names of the tools, whatever their events are named', (t) => {
	const shown: unknown[] = []
	const calls = new ToolCalls((type, data) => shown.push([type, ...Object.values(data)]))
	const hear = (event_type: string, payload: Record<string, unknown>): void => calls.handle({ event_type, payload })
	hear('skill.invoked', { skill: 'weather', skill_id: 's', call_id: '1', arguments: '{"city":"Bonn"}' })
	hear('primitive.called', { primitive: 'memory.recall', call_id: '1.a', arguments: '' })
	hear('primitive.result', { primitive: 'memory.recall', call_id: '1.a', result: '[]' })
	hear('skill.logged', { skill: 'weather', skill_id: 's', lines: ['x'] })
	hear('skill.completed', { skill: 'weather', skill_id: 's', call_id: '1', result: 'rain' })
	hear('mcp.called', { server: 'shop', tool: 'buy', call_id: '2', arguments: '{"no JSON' })
	hear('mcp.failed', { server: 'shop', tool: 'buy', call_id: '2', code: 'mcp_failed', message: 'sold out' })
	hear('clock.asked', { tool: 'clock', call_id: '3', arguments: '{}' })
	hear('primitive.failed', { primitive: 'x', call_id: 'unheard', code: 'tool_failed', message: 'm' })
	t.strictSame(shown, [
		['invoke_start', 'weather', { city: 'Bonn' }],
		['invoke_start', 'memory.recall', {}],
		['invoke_end', '[]'],
		['invoke_end', 'rain'],
		['invoke_start', 'mcp__shop__buy', '{"no JSON'],
		['invoke_end', '{"error":{"code":"mcp_failed","message":"sold out"}}'],
		['invoke_start', 'clock', {}],
	])
	t.strictSame([...calls.skills], ['weather'])
	t.end()
})
