// The types of the schema public, written by `npm run check -- --write` from the migrated database.

export type Json = string | number | boolean | null | { [key: string]: Json | undefined } | Json[];

export type Database = {
  public: {
    Tables: {
      books: {
        Row: {
          account_id: string;
          assemble_completed_at: string | null;
          assemble_error: string | null;
          assemble_job_id: string | null;
          assemble_result: Json | null;
          assemble_retry_count: number;
          assemble_started_at: string | null;
          assemble_status: string;
          created_at: string;
          headings_completed_at: string | null;
          headings_error: string | null;
          headings_job_id: string | null;
          headings_result: Json | null;
          headings_retry_count: number;
          headings_started_at: string | null;
          headings_status: string;
          id: string;
          media_type: string;
          metadata_completed_at: string | null;
          metadata_error: string | null;
          metadata_job_id: string | null;
          metadata_result: Json | null;
          metadata_retry_count: number;
          metadata_started_at: string | null;
          metadata_status: string;
          page_numbers_completed_at: string | null;
          page_numbers_error: string | null;
          page_numbers_job_id: string | null;
          page_numbers_result: Json | null;
          page_numbers_retry_count: number;
          page_numbers_started_at: string | null;
          page_numbers_status: string;
          review_completed_at: string | null;
          review_error: string | null;
          review_job_id: string | null;
          review_result: Json | null;
          review_retry_count: number;
          review_started_at: string | null;
          review_status: string;
          source_path: string;
          split_completed_at: string | null;
          split_error: string | null;
          split_job_id: string | null;
          split_result: Json | null;
          split_retry_count: number;
          split_started_at: string | null;
          split_status: string;
          structure_completed_at: string | null;
          structure_error: string | null;
          structure_job_id: string | null;
          structure_result: Json | null;
          structure_retry_count: number;
          structure_started_at: string | null;
          structure_status: string;
          title: string;
          toc_completed_at: string | null;
          toc_error: string | null;
          toc_job_id: string | null;
          toc_result: Json | null;
          toc_retry_count: number;
          toc_started_at: string | null;
          toc_status: string;
        };
        ComputedFields: never;
        Insert: {
          account_id: string;
          assemble_completed_at?: string | null;
          assemble_error?: string | null;
          assemble_job_id?: string | null;
          assemble_result?: Json | null;
          assemble_retry_count?: number;
          assemble_started_at?: string | null;
          assemble_status?: string;
          created_at?: string;
          headings_completed_at?: string | null;
          headings_error?: string | null;
          headings_job_id?: string | null;
          headings_result?: Json | null;
          headings_retry_count?: number;
          headings_started_at?: string | null;
          headings_status?: string;
          id?: string;
          media_type?: string;
          metadata_completed_at?: string | null;
          metadata_error?: string | null;
          metadata_job_id?: string | null;
          metadata_result?: Json | null;
          metadata_retry_count?: number;
          metadata_started_at?: string | null;
          metadata_status?: string;
          page_numbers_completed_at?: string | null;
          page_numbers_error?: string | null;
          page_numbers_job_id?: string | null;
          page_numbers_result?: Json | null;
          page_numbers_retry_count?: number;
          page_numbers_started_at?: string | null;
          page_numbers_status?: string;
          review_completed_at?: string | null;
          review_error?: string | null;
          review_job_id?: string | null;
          review_result?: Json | null;
          review_retry_count?: number;
          review_started_at?: string | null;
          review_status?: string;
          source_path: string;
          split_completed_at?: string | null;
          split_error?: string | null;
          split_job_id?: string | null;
          split_result?: Json | null;
          split_retry_count?: number;
          split_started_at?: string | null;
          split_status?: string;
          structure_completed_at?: string | null;
          structure_error?: string | null;
          structure_job_id?: string | null;
          structure_result?: Json | null;
          structure_retry_count?: number;
          structure_started_at?: string | null;
          structure_status?: string;
          title: string;
          toc_completed_at?: string | null;
          toc_error?: string | null;
          toc_job_id?: string | null;
          toc_result?: Json | null;
          toc_retry_count?: number;
          toc_started_at?: string | null;
          toc_status?: string;
        };
        Update: {
          account_id?: string;
          assemble_completed_at?: string | null;
          assemble_error?: string | null;
          assemble_job_id?: string | null;
          assemble_result?: Json | null;
          assemble_retry_count?: number;
          assemble_started_at?: string | null;
          assemble_status?: string;
          created_at?: string;
          headings_completed_at?: string | null;
          headings_error?: string | null;
          headings_job_id?: string | null;
          headings_result?: Json | null;
          headings_retry_count?: number;
          headings_started_at?: string | null;
          headings_status?: string;
          id?: string;
          media_type?: string;
          metadata_completed_at?: string | null;
          metadata_error?: string | null;
          metadata_job_id?: string | null;
          metadata_result?: Json | null;
          metadata_retry_count?: number;
          metadata_started_at?: string | null;
          metadata_status?: string;
          page_numbers_completed_at?: string | null;
          page_numbers_error?: string | null;
          page_numbers_job_id?: string | null;
          page_numbers_result?: Json | null;
          page_numbers_retry_count?: number;
          page_numbers_started_at?: string | null;
          page_numbers_status?: string;
          review_completed_at?: string | null;
          review_error?: string | null;
          review_job_id?: string | null;
          review_result?: Json | null;
          review_retry_count?: number;
          review_started_at?: string | null;
          review_status?: string;
          source_path?: string;
          split_completed_at?: string | null;
          split_error?: string | null;
          split_job_id?: string | null;
          split_result?: Json | null;
          split_retry_count?: number;
          split_started_at?: string | null;
          split_status?: string;
          structure_completed_at?: string | null;
          structure_error?: string | null;
          structure_job_id?: string | null;
          structure_result?: Json | null;
          structure_retry_count?: number;
          structure_started_at?: string | null;
          structure_status?: string;
          title?: string;
          toc_completed_at?: string | null;
          toc_error?: string | null;
          toc_job_id?: string | null;
          toc_result?: Json | null;
          toc_retry_count?: number;
          toc_started_at?: string | null;
          toc_status?: string;
        };
        Relationships: [];
      };
      chunk: {
        Row: {
          document_id: string;
          end_offset: number;
          graphiti_posted_at: string | null;
          heading: string | null;
          id: string;
          ordinal: number;
          page: number | null;
          start_offset: number;
          text: string;
          tokens: number;
        };
        ComputedFields: never;
        Insert: {
          document_id: string;
          end_offset: number;
          graphiti_posted_at?: string | null;
          heading?: string | null;
          id: string;
          ordinal: number;
          page?: number | null;
          start_offset: number;
          text: string;
          tokens: number;
        };
        Update: {
          document_id?: string;
          end_offset?: number;
          graphiti_posted_at?: string | null;
          heading?: string | null;
          id?: string;
          ordinal?: number;
          page?: number | null;
          start_offset?: number;
          text?: string;
          tokens?: number;
        };
        Relationships: [
          {
            foreignKeyName: 'chunk_document_fkey';
            columns: ['document_id'];
            isOneToOne: false;
            referencedRelation: 'document';
            referencedColumns: ['id'];
          },
          {
            foreignKeyName: 'chunk_document_fkey';
            columns: ['document_id'];
            isOneToOne: false;
            referencedRelation: 'pipeline_job';
            referencedColumns: ['document_id'];
          },
          {
            foreignKeyName: 'chunk_document_fkey';
            columns: ['document_id'];
            isOneToOne: false;
            referencedRelation: 'pipeline_job';
            referencedColumns: ['id'];
          },
          {
            foreignKeyName: 'chunk_document_fkey';
            columns: ['document_id'];
            isOneToOne: false;
            referencedRelation: 'pipeline_phase';
            referencedColumns: ['pipeline_job_id'];
          },
        ];
      };
      chunk_draft: {
        Row: {
          attempt_id: number;
          document_id: string;
          end_offset: number;
          heading: string | null;
          id: string;
          ordinal: number;
          page: number | null;
          start_offset: number;
          text: string;
          tokens: number;
        };
        ComputedFields: never;
        Insert: {
          attempt_id: number;
          document_id: string;
          end_offset: number;
          heading?: string | null;
          id: string;
          ordinal: number;
          page?: number | null;
          start_offset: number;
          text: string;
          tokens: number;
        };
        Update: {
          attempt_id?: number;
          document_id?: string;
          end_offset?: number;
          heading?: string | null;
          id?: string;
          ordinal?: number;
          page?: number | null;
          start_offset?: number;
          text?: string;
          tokens?: number;
        };
        Relationships: [
          {
            foreignKeyName: 'chunk_draft_document_fkey';
            columns: ['document_id'];
            isOneToOne: false;
            referencedRelation: 'document';
            referencedColumns: ['id'];
          },
          {
            foreignKeyName: 'chunk_draft_document_fkey';
            columns: ['document_id'];
            isOneToOne: false;
            referencedRelation: 'pipeline_job';
            referencedColumns: ['document_id'];
          },
          {
            foreignKeyName: 'chunk_draft_document_fkey';
            columns: ['document_id'];
            isOneToOne: false;
            referencedRelation: 'pipeline_job';
            referencedColumns: ['id'];
          },
          {
            foreignKeyName: 'chunk_draft_document_fkey';
            columns: ['document_id'];
            isOneToOne: false;
            referencedRelation: 'pipeline_phase';
            referencedColumns: ['pipeline_job_id'];
          },
        ];
      };
      document: {
        Row: {
          chunking_completed_at: string | null;
          chunking_error: string | null;
          chunking_job_id: string | null;
          chunking_result: Json | null;
          chunking_retry_count: number;
          chunking_started_at: string | null;
          chunking_status: string;
          clerk_org_id: string;
          created_at: string;
          extraction_completed_at: string | null;
          extraction_error: string | null;
          extraction_job_id: string | null;
          extraction_result: Json | null;
          extraction_retry_count: number;
          extraction_started_at: string | null;
          extraction_status: string;
          id: string;
          kg_ingest_completed_at: string | null;
          kg_ingest_error: string | null;
          kg_ingest_job_id: string | null;
          kg_ingest_result: Json | null;
          kg_ingest_retry_count: number;
          kg_ingest_started_at: string | null;
          kg_ingest_status: string;
          metadata: NonNullable<Json>;
          monolith_completed_at: string | null;
          monolith_error: string | null;
          monolith_job_id: string | null;
          monolith_result: Json | null;
          monolith_retry_count: number;
          monolith_started_at: string | null;
          monolith_status: string;
          source_path: string;
        };
        ComputedFields: never;
        Insert: {
          chunking_completed_at?: string | null;
          chunking_error?: string | null;
          chunking_job_id?: string | null;
          chunking_result?: Json | null;
          chunking_retry_count?: number;
          chunking_started_at?: string | null;
          chunking_status?: string;
          clerk_org_id?: never;
          created_at?: string;
          extraction_completed_at?: string | null;
          extraction_error?: string | null;
          extraction_job_id?: string | null;
          extraction_result?: Json | null;
          extraction_retry_count?: number;
          extraction_started_at?: string | null;
          extraction_status?: string;
          id?: string;
          kg_ingest_completed_at?: string | null;
          kg_ingest_error?: string | null;
          kg_ingest_job_id?: string | null;
          kg_ingest_result?: Json | null;
          kg_ingest_retry_count?: number;
          kg_ingest_started_at?: string | null;
          kg_ingest_status?: string;
          metadata?: NonNullable<Json>;
          monolith_completed_at?: string | null;
          monolith_error?: string | null;
          monolith_job_id?: string | null;
          monolith_result?: Json | null;
          monolith_retry_count?: number;
          monolith_started_at?: string | null;
          monolith_status?: string;
          source_path: string;
        };
        Update: {
          chunking_completed_at?: string | null;
          chunking_error?: string | null;
          chunking_job_id?: string | null;
          chunking_result?: Json | null;
          chunking_retry_count?: number;
          chunking_started_at?: string | null;
          chunking_status?: string;
          clerk_org_id?: never;
          created_at?: string;
          extraction_completed_at?: string | null;
          extraction_error?: string | null;
          extraction_job_id?: string | null;
          extraction_result?: Json | null;
          extraction_retry_count?: number;
          extraction_started_at?: string | null;
          extraction_status?: string;
          id?: string;
          kg_ingest_completed_at?: string | null;
          kg_ingest_error?: string | null;
          kg_ingest_job_id?: string | null;
          kg_ingest_result?: Json | null;
          kg_ingest_retry_count?: number;
          kg_ingest_started_at?: string | null;
          kg_ingest_status?: string;
          metadata?: NonNullable<Json>;
          monolith_completed_at?: string | null;
          monolith_error?: string | null;
          monolith_job_id?: string | null;
          monolith_result?: Json | null;
          monolith_retry_count?: number;
          monolith_started_at?: string | null;
          monolith_status?: string;
          source_path?: string;
        };
        Relationships: [];
      };
      kg_edge: {
        Row: {
          chunk_id: string;
          fact: string;
          id: number;
          relation: string;
          source_id: number;
          target_id: number;
        };
        ComputedFields: never;
        Insert: {
          chunk_id: string;
          fact: string;
          id?: never;
          relation: string;
          source_id: number;
          target_id: number;
        };
        Update: {
          chunk_id?: string;
          fact?: string;
          id?: never;
          relation?: string;
          source_id?: number;
          target_id?: number;
        };
        Relationships: [
          {
            foreignKeyName: 'kg_edge_chunk_fkey';
            columns: ['chunk_id'];
            isOneToOne: false;
            referencedRelation: 'chunk';
            referencedColumns: ['id'];
          },
          {
            foreignKeyName: 'kg_edge_source_fkey';
            columns: ['source_id'];
            isOneToOne: false;
            referencedRelation: 'kg_entity';
            referencedColumns: ['id'];
          },
          {
            foreignKeyName: 'kg_edge_target_fkey';
            columns: ['target_id'];
            isOneToOne: false;
            referencedRelation: 'kg_entity';
            referencedColumns: ['id'];
          },
        ];
      };
      kg_entity: {
        Row: {
          clerk_org_id: string;
          description: string;
          id: number;
          key: string;
          name: string;
          type: string;
        };
        ComputedFields: never;
        Insert: {
          clerk_org_id: string;
          description?: string;
          id?: never;
          key: string;
          name: string;
          type: string;
        };
        Update: {
          clerk_org_id?: string;
          description?: string;
          id?: never;
          key?: string;
          name?: string;
          type?: string;
        };
        Relationships: [];
      };
      kg_mention: {
        Row: {
          chunk_id: string;
          entity_id: number;
          name: string;
        };
        ComputedFields: never;
        Insert: {
          chunk_id: string;
          entity_id: number;
          name: string;
        };
        Update: {
          chunk_id?: string;
          entity_id?: number;
          name?: string;
        };
        Relationships: [
          {
            foreignKeyName: 'kg_mention_chunk_fkey';
            columns: ['chunk_id'];
            isOneToOne: false;
            referencedRelation: 'chunk';
            referencedColumns: ['id'];
          },
          {
            foreignKeyName: 'kg_mention_entity_fkey';
            columns: ['entity_id'];
            isOneToOne: false;
            referencedRelation: 'kg_entity';
            referencedColumns: ['id'];
          },
        ];
      };
      leads: {
        Row: {
          account_id: string;
          company_url: string;
          created_at: string;
          email: string;
          id: string;
          intel_completed_at: string | null;
          intel_error: string | null;
          intel_job_id: string | null;
          intel_result: Json | null;
          intel_retry_count: number;
          intel_started_at: string | null;
          intel_status: string;
          messaging_completed_at: string | null;
          messaging_error: string | null;
          messaging_job_id: string | null;
          messaging_result: Json | null;
          messaging_retry_count: number;
          messaging_started_at: string | null;
          messaging_status: string;
          scrape_completed_at: string | null;
          scrape_error: string | null;
          scrape_job_id: string | null;
          scrape_result: Json | null;
          scrape_retry_count: number;
          scrape_started_at: string | null;
          scrape_status: string;
          strategy_completed_at: string | null;
          strategy_error: string | null;
          strategy_job_id: string | null;
          strategy_result: Json | null;
          strategy_retry_count: number;
          strategy_started_at: string | null;
          strategy_status: string;
          subject_completed_at: string | null;
          subject_error: string | null;
          subject_job_id: string | null;
          subject_result: Json | null;
          subject_retry_count: number;
          subject_started_at: string | null;
          subject_status: string;
        };
        ComputedFields: never;
        Insert: {
          account_id: string;
          company_url: string;
          created_at?: string;
          email: string;
          id?: string;
          intel_completed_at?: string | null;
          intel_error?: string | null;
          intel_job_id?: string | null;
          intel_result?: Json | null;
          intel_retry_count?: number;
          intel_started_at?: string | null;
          intel_status?: string;
          messaging_completed_at?: string | null;
          messaging_error?: string | null;
          messaging_job_id?: string | null;
          messaging_result?: Json | null;
          messaging_retry_count?: number;
          messaging_started_at?: string | null;
          messaging_status?: string;
          scrape_completed_at?: string | null;
          scrape_error?: string | null;
          scrape_job_id?: string | null;
          scrape_result?: Json | null;
          scrape_retry_count?: number;
          scrape_started_at?: string | null;
          scrape_status?: string;
          strategy_completed_at?: string | null;
          strategy_error?: string | null;
          strategy_job_id?: string | null;
          strategy_result?: Json | null;
          strategy_retry_count?: number;
          strategy_started_at?: string | null;
          strategy_status?: string;
          subject_completed_at?: string | null;
          subject_error?: string | null;
          subject_job_id?: string | null;
          subject_result?: Json | null;
          subject_retry_count?: number;
          subject_started_at?: string | null;
          subject_status?: string;
        };
        Update: {
          account_id?: string;
          company_url?: string;
          created_at?: string;
          email?: string;
          id?: string;
          intel_completed_at?: string | null;
          intel_error?: string | null;
          intel_job_id?: string | null;
          intel_result?: Json | null;
          intel_retry_count?: number;
          intel_started_at?: string | null;
          intel_status?: string;
          messaging_completed_at?: string | null;
          messaging_error?: string | null;
          messaging_job_id?: string | null;
          messaging_result?: Json | null;
          messaging_retry_count?: number;
          messaging_started_at?: string | null;
          messaging_status?: string;
          scrape_completed_at?: string | null;
          scrape_error?: string | null;
          scrape_job_id?: string | null;
          scrape_result?: Json | null;
          scrape_retry_count?: number;
          scrape_started_at?: string | null;
          scrape_status?: string;
          strategy_completed_at?: string | null;
          strategy_error?: string | null;
          strategy_job_id?: string | null;
          strategy_result?: Json | null;
          strategy_retry_count?: number;
          strategy_started_at?: string | null;
          strategy_status?: string;
          subject_completed_at?: string | null;
          subject_error?: string | null;
          subject_job_id?: string | null;
          subject_result?: Json | null;
          subject_retry_count?: number;
          subject_started_at?: string | null;
          subject_status?: string;
        };
        Relationships: [];
      };
      pages: {
        Row: {
          blend_completed_at: string | null;
          blend_error: string | null;
          blend_job_id: string | null;
          blend_result: Json | null;
          blend_retry_count: number;
          blend_started_at: string | null;
          blend_status: string;
          book_id: string;
          id: string;
          label_completed_at: string | null;
          label_error: string | null;
          label_job_id: string | null;
          label_result: Json | null;
          label_retry_count: number;
          label_started_at: string | null;
          label_status: string;
          number: number;
          ocr_completed_at: string | null;
          ocr_error: string | null;
          ocr_job_id: string | null;
          ocr_result: Json | null;
          ocr_retry_count: number;
          ocr_started_at: string | null;
          ocr_status: string;
        };
        ComputedFields: never;
        Insert: {
          blend_completed_at?: string | null;
          blend_error?: string | null;
          blend_job_id?: string | null;
          blend_result?: Json | null;
          blend_retry_count?: number;
          blend_started_at?: string | null;
          blend_status?: string;
          book_id: string;
          id?: string;
          label_completed_at?: string | null;
          label_error?: string | null;
          label_job_id?: string | null;
          label_result?: Json | null;
          label_retry_count?: number;
          label_started_at?: string | null;
          label_status?: string;
          number: number;
          ocr_completed_at?: string | null;
          ocr_error?: string | null;
          ocr_job_id?: string | null;
          ocr_result?: Json | null;
          ocr_retry_count?: number;
          ocr_started_at?: string | null;
          ocr_status?: string;
        };
        Update: {
          blend_completed_at?: string | null;
          blend_error?: string | null;
          blend_job_id?: string | null;
          blend_result?: Json | null;
          blend_retry_count?: number;
          blend_started_at?: string | null;
          blend_status?: string;
          book_id?: string;
          id?: string;
          label_completed_at?: string | null;
          label_error?: string | null;
          label_job_id?: string | null;
          label_result?: Json | null;
          label_retry_count?: number;
          label_started_at?: string | null;
          label_status?: string;
          number?: number;
          ocr_completed_at?: string | null;
          ocr_error?: string | null;
          ocr_job_id?: string | null;
          ocr_result?: Json | null;
          ocr_retry_count?: number;
          ocr_started_at?: string | null;
          ocr_status?: string;
        };
        Relationships: [
          {
            foreignKeyName: 'pages_book_fkey';
            columns: ['book_id'];
            isOneToOne: false;
            referencedRelation: 'book_pipeline_status';
            referencedColumns: ['id'];
          },
          {
            foreignKeyName: 'pages_book_fkey';
            columns: ['book_id'];
            isOneToOne: false;
            referencedRelation: 'books';
            referencedColumns: ['id'];
          },
        ];
      };
      pipeline_decisions: {
        Row: {
          attempt_id: number;
          closed_at: string | null;
          closed_why: string | null;
          deadline_at: string;
          decided_at: string | null;
          decided_by: string | null;
          decision: Json | null;
          entity_id: string;
          opened_at: string;
          pipeline: string;
          run_id: number;
          schema: NonNullable<Json>;
          stage: string;
        };
        ComputedFields: never;
        Insert: {
          attempt_id: number;
          closed_at?: string | null;
          closed_why?: string | null;
          deadline_at: string;
          decided_at?: string | null;
          decided_by?: string | null;
          decision?: Json | null;
          entity_id: string;
          opened_at: string;
          pipeline: string;
          run_id: number;
          schema: NonNullable<Json>;
          stage: string;
        };
        Update: {
          attempt_id?: number;
          closed_at?: string | null;
          closed_why?: string | null;
          deadline_at?: string;
          decided_at?: string | null;
          decided_by?: string | null;
          decision?: Json | null;
          entity_id?: string;
          opened_at?: string;
          pipeline?: string;
          run_id?: number;
          schema?: NonNullable<Json>;
          stage?: string;
        };
        Relationships: [];
      };
    };
    Views: {
      book_costs: {
        Row: {
          account_id: string;
          books: number | null;
          completed: number | null;
          cost_usd: number | null;
        };
        ComputedFields: never;
        Relationships: [];
      };
      book_pipeline_status: {
        Row: {
          account_id: string;
          assemble_status: string;
          completed_at: string | null;
          created_at: string;
          current_error: string | null;
          current_stages: string[] | null;
          document_path: string | null;
          headings_status: string;
          id: string;
          metadata_status: string;
          page_numbers_status: string;
          pages: number | null;
          pages_blended: number | null;
          pages_failed: number | null;
          pages_labelled: number | null;
          pages_read: number | null;
          review_status: string;
          split_status: string;
          status: string | null;
          structure_status: string;
          title: string;
          toc_status: string;
        };
        ComputedFields: never;
        Relationships: [];
      };
      document_costs: {
        Row: {
          clerk_org_id: string | null;
          completed: number | null;
          cost_usd: number | null;
          documents: number | null;
          source_platform: string | null;
        };
        ComputedFields: never;
        Relationships: [];
      };
      lead_costs: {
        Row: {
          account_id: string;
          completed: number | null;
          cost_usd: number | null;
          leads: number | null;
        };
        ComputedFields: never;
        Relationships: [];
      };
      lead_pipeline_status: {
        Row: {
          account_id: string;
          company_url: string;
          completed_at: string | null;
          created_at: string;
          current_error: string | null;
          current_stage: string | null;
          current_status: string | null;
          email: string;
          id: string;
          intel_status: string;
          messaging_status: string;
          scrape_status: string;
          strategy_status: string;
          subject_status: string;
        };
        ComputedFields: never;
        Relationships: [];
      };
      pipeline_job: {
        Row: {
          completed_at: string | null;
          created_at: string | null;
          current_phase: string | null;
          document_id: string;
          id: string;
          metadata: Json | null;
          pipeline: string | null;
          run_id: number | null;
          started_at: string | null;
          status: string | null;
          trace_id: string | null;
          updated_at: string | null;
        };
        ComputedFields: never;
        Relationships: [];
      };
      pipeline_phase: {
        Row: {
          completed_at: string | null;
          error_message: string | null;
          error_type: string | null;
          id: number | null;
          input_location: string | null;
          metadata: Json | null;
          output_location: string | null;
          parent_phase_id: number | null;
          phase: string | null;
          pipeline: string | null;
          pipeline_job_id: string;
          queued_at: string | null;
          retry_count: number | null;
          run_id: number | null;
          started_at: string | null;
          status: string | null;
        };
        ComputedFields: never;
        Relationships: [];
      };
    };
    Functions: {
      apply_chunks: { Args: { p_items: Json }; Returns: undefined };
      apply_document: { Args: { p_items: Json }; Returns: undefined };
      apply_facts: { Args: { p_items: Json }; Returns: undefined };
      apply_graphiti: { Args: { p_items: Json }; Returns: undefined };
      clerk_org_id: { Args: Record<PropertyKey, never>; Returns: string };
      insert_pages: {
        Args: { p_items: Json; p_parent: string };
        Returns: {
          entity_id: string;
          item_key: string;
        }[];
      };
      kg_key: { Args: { p_name: string }; Returns: string };
      names_in_chunks: {
        Args: { p_items: Json };
        Returns: {
          chunk_id: string;
          clerk_org_id: string;
          description: string;
          key: string;
          name: string;
          type: string;
        }[];
      };
      pipeline_checkpoint: {
        Args: { p_attempt: number; p_token: string; p_turns: Json; p_worker: string };
        Returns: Json;
      };
      pipeline_claim: {
        Args: { p_host: string; p_limit: number; p_pipeline: string; p_seq: number; p_stage: string; p_worker: string };
        Returns: Json;
      };
      pipeline_complete: { Args: { p_items: Json; p_limit: number; p_seq: number; p_worker: string }; Returns: Json };
      pipeline_decide: { Args: { p_attempt: number; p_decision: Json }; Returns: Json };
      pipeline_fold: { Args: { p_fan_outs: number[] }; Returns: Json };
      pipeline_job_owner: { Args: { p_job: Json }; Returns: Json };
      pipeline_leave: { Args: { p_hand_over?: boolean; p_worker: string }; Returns: Json };
      pipeline_note_faults: { Args: { p_faults: Json }; Returns: Json };
      pipeline_note_jobs: { Args: { p_jobs: Json }; Returns: Json };
      pipeline_poll: { Args: { p_limit: number; p_poll_ms?: number }; Returns: Json };
      pipeline_renew: { Args: { p_attempts: number[]; p_worker: string }; Returns: Json };
      pipeline_resume: { Args: { p_items: Json }; Returns: Json };
      pipeline_ring: { Args: { p_stages: Json }; Returns: Json };
      pipeline_spawn: {
        Args: { p_attempt: number; p_items: Json; p_last: boolean; p_token: string; p_worker: string };
        Returns: Json;
      };
      pipeline_sweep: { Args: Record<PropertyKey, never>; Returns: Json };
      pipeline_turns: { Args: { p_attempt: number; p_token: string; p_worker: string }; Returns: Json };
    };
    Enums: {
      [_ in never]: never;
    };
    CompositeTypes: {
      [_ in never]: never;
    };
  };
};

type DatabaseWithoutInternals = Omit<Database, '__InternalSupabase'>;

type DefaultSchema = DatabaseWithoutInternals[Extract<keyof Database, 'public'>];

export type Tables<
  DefaultSchemaTableNameOrOptions extends
    | keyof (DefaultSchema['Tables'] & DefaultSchema['Views'])
    | { schema: keyof DatabaseWithoutInternals },
  TableName extends DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals;
  }
    ? keyof (DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions['schema']]['Tables'] &
        DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions['schema']]['Views'])
    : never = never,
> = DefaultSchemaTableNameOrOptions extends { schema: keyof DatabaseWithoutInternals }
  ? (DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions['schema']]['Tables'] &
      DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions['schema']]['Views'])[TableName] extends {
      Row: infer R;
    }
    ? R
    : never
  : DefaultSchemaTableNameOrOptions extends keyof (DefaultSchema['Tables'] & DefaultSchema['Views'])
    ? (DefaultSchema['Tables'] & DefaultSchema['Views'])[DefaultSchemaTableNameOrOptions] extends {
        Row: infer R;
      }
      ? R
      : never
    : never;

export type TablesInsert<
  DefaultSchemaTableNameOrOptions extends keyof DefaultSchema['Tables'] | { schema: keyof DatabaseWithoutInternals },
  TableName extends DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals;
  }
    ? keyof DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions['schema']]['Tables']
    : never = never,
> = DefaultSchemaTableNameOrOptions extends { schema: keyof DatabaseWithoutInternals }
  ? DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions['schema']]['Tables'][TableName] extends {
      Insert: infer I;
    }
    ? I
    : never
  : DefaultSchemaTableNameOrOptions extends keyof DefaultSchema['Tables']
    ? DefaultSchema['Tables'][DefaultSchemaTableNameOrOptions] extends {
        Insert: infer I;
      }
      ? I
      : never
    : never;

export type TablesUpdate<
  DefaultSchemaTableNameOrOptions extends keyof DefaultSchema['Tables'] | { schema: keyof DatabaseWithoutInternals },
  TableName extends DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals;
  }
    ? keyof DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions['schema']]['Tables']
    : never = never,
> = DefaultSchemaTableNameOrOptions extends { schema: keyof DatabaseWithoutInternals }
  ? DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions['schema']]['Tables'][TableName] extends {
      Update: infer U;
    }
    ? U
    : never
  : DefaultSchemaTableNameOrOptions extends keyof DefaultSchema['Tables']
    ? DefaultSchema['Tables'][DefaultSchemaTableNameOrOptions] extends {
        Update: infer U;
      }
      ? U
      : never
    : never;

export type Enums<
  DefaultSchemaEnumNameOrOptions extends keyof DefaultSchema['Enums'] | { schema: keyof DatabaseWithoutInternals },
  EnumName extends DefaultSchemaEnumNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals;
  }
    ? keyof DatabaseWithoutInternals[DefaultSchemaEnumNameOrOptions['schema']]['Enums']
    : never = never,
> = DefaultSchemaEnumNameOrOptions extends { schema: keyof DatabaseWithoutInternals }
  ? DatabaseWithoutInternals[DefaultSchemaEnumNameOrOptions['schema']]['Enums'][EnumName]
  : DefaultSchemaEnumNameOrOptions extends keyof DefaultSchema['Enums']
    ? DefaultSchema['Enums'][DefaultSchemaEnumNameOrOptions]
    : never;

export type CompositeTypes<
  PublicCompositeTypeNameOrOptions extends
    | keyof DefaultSchema['CompositeTypes']
    | { schema: keyof DatabaseWithoutInternals },
  CompositeTypeName extends PublicCompositeTypeNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals;
  }
    ? keyof DatabaseWithoutInternals[PublicCompositeTypeNameOrOptions['schema']]['CompositeTypes']
    : never = never,
> = PublicCompositeTypeNameOrOptions extends { schema: keyof DatabaseWithoutInternals }
  ? DatabaseWithoutInternals[PublicCompositeTypeNameOrOptions['schema']]['CompositeTypes'][CompositeTypeName]
  : PublicCompositeTypeNameOrOptions extends keyof DefaultSchema['CompositeTypes']
    ? DefaultSchema['CompositeTypes'][PublicCompositeTypeNameOrOptions]
    : never;

export const Constants = {
  public: {
    Enums: {},
  },
} as const;
