export interface Host{workspace:string;signal:AbortSignal;log(...args:readonly[text:string]|readonly[level:string,text:string]):void;progress(progress:Progress):void;exec(program:string,args?:readonly string[],options?:ExecOptions):Promise<ExecResult>;sqlite(path:string,options?:SqliteOptions):Promise<Database>;fetch(url:string|URL,init?:RequestInit):Promise<Response>;env(name:string):string|undefined;sample(request:SampleRequest):Promise<SampleResult>}
export interface SampleRequest{messages:readonly SampleMessage[];systemPrompt?:string;maxTokens:number;temperature?:number;stopSequences?:readonly string[];modelPreferences?:{hints?:readonly{name?:string}[]};allowedToolPatterns?:readonly string[];tools?:readonly{name:string;description?:string;inputSchema:object}[];toolChoice?:{mode:"auto"|"required"|"none"}}
export interface SampleMessage{role:"user"|"assistant";content:string|SampleBlock|readonly SampleBlock[]}
export interface SampleBlock{type:string;[key:string]:unknown}
export interface SampleResult{role:"assistant";model:string;content:SampleBlock|readonly SampleBlock[];stopReason?:string}
export interface ExecOptions{cwd?:string;stdin?:string|Uint8Array;env?:Record<string,string>;timeoutMs?:number;maxBytes?:number;onOutput?:(output:ExecOutput)=>void}
export interface ExecOutput{stream:"stdout"|"stderr";text:string}
export interface ExecResult{code:number;signal:string|null;stdout:string;stderr:string;omitted:{stdout:number;stderr:number};timedOut:boolean}
export interface SqliteOptions{write?:boolean}
export type SqlValue=null|number|bigint|string|Uint8Array;
export type SqlParameters=readonly SqlValue[]|Record<string,SqlValue>;
export interface SqlRows{columns:readonly string[];rows:readonly(readonly SqlValue[])[];more:boolean}
export interface SqlChanges{changes:number;lastInsertRowid:number|bigint}
export interface Database extends AsyncDisposable{query(sql:string,parameters?:SqlParameters,page?:{limit?:number;offset?:number}):Promise<SqlRows>;execute(sql:string,parameters?:SqlParameters):Promise<SqlChanges>;close():Promise<void>}
export interface ContentBlock{type:string;[key:string]:unknown}
export interface ToolResult{content:readonly ContentBlock[];structuredContent?:unknown;isError?:boolean;[key:string]:unknown}
export interface Progress{progress:number;total?:number;message?:string}
export type Json=null|boolean|number|string|readonly Json[]|JsonObject;
export interface JsonObject{[key:string]:Json}
export interface Permissions{read:readonly string[];write:readonly string[];net:readonly string[];run:readonly string[];env:readonly string[]}
export interface Meta{name?:string;version?:string;description?:string;permissions?:Partial<Permissions>;tools:Record<string,ToolMeta>}
export interface ToolMeta{title?:string;description?:string;inputSchema?:object;outputSchema?:object;annotations?:object;permissions?:Partial<Permissions>;errors?:Record<string,string|object>;visibility?:"internal"|"external";examples?:readonly string[];icons?:readonly object[];execution?:object;_meta?:object}